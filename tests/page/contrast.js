// Every text against what lies behind it, by WCAG 2.2's formula, as pale as opacity makes it; lists what is below AA.
() => {
  for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish();
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const numbers = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (top, under) => [0, 1, 2].map((n) => top[n] * top[3] + under[n] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      layers.unshift(numbers(getComputedStyle(each).backgroundColor));
    }
    return layers.reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const opacityOf = (element) => {
    let found = 1;
    for (let each = element; each; each = each.parentElement) found *= Number(getComputedStyle(each).opacity);
    return found;
  };
  const linear = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) =>
    0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
  const hasText = (element) =>
    element.matches("input[type=search]") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    if (!hasText(element) || !element.checkVisibility() || element.closest(".unseen, .skip, noscript")) continue;
    const style = getComputedStyle(element);
    const opacity = opacityOf(element);
    if (opacity === 0) continue;
    const under = behind(element);
    const [red, green, blue, alpha] = numbers(style.color);
    const lights = [over([red, green, blue, alpha * opacity], under), under].map(luminance);
    const ratio = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return found;
}
