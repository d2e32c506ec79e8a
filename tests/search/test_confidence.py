import numpy as np
import pytest

from denspi.search.confidence import Confidence, calibration_error, fit_confidence, reliability, risk_coverage


def test_the_curve_is_found_again_from_its_own_draws() -> None:
    random = np.random.default_rng(0)
    margin = random.exponential(3.0, 20_000)
    true = Confidence(0.8, -1.5)
    is_right = random.random(len(margin)) < true.of(margin)
    found = fit_confidence(margin, is_right)
    assert found.slope == pytest.approx(true.slope, abs=0.05)
    assert found.intercept == pytest.approx(true.intercept, abs=0.08)
    assert calibration_error(reliability(found.of(margin), is_right)) < 0.02
    assert calibration_error(reliability(np.full(len(margin), 0.99), is_right)) > 0.3


@pytest.mark.parametrize("is_right", [True, False])
def test_all_right_or_all_wrong_stays_finite(is_right: bool) -> None:
    found = fit_confidence(np.linspace(0, 5, 40), np.full(40, is_right))
    confidence = found.of(np.linspace(0, 5, 40))
    assert np.all(np.isfinite(confidence))
    assert (confidence.mean() > 0.9) == is_right


def test_calibration_error_by_hand() -> None:
    confidence = np.array([0.2, 0.2, 0.8, 0.8])
    is_right = np.array([False, False, True, False])
    assert calibration_error(reliability(confidence, is_right, bins=2)) == pytest.approx((0.2 + 0.3) / 2)


def test_risk_counts_the_surest_first() -> None:
    confidence = np.array([0.9, 0.1, 0.8, 0.4])
    is_right = np.array([True, False, True, False])
    assert risk_coverage(confidence, is_right, np.array([0.25, 0.5, 0.75, 1.0])).tolist() == [
        0,
        0,
        1 / 3,
        0.5,
    ]


@pytest.mark.filterwarnings("error")
def test_any_margin_has_a_probability() -> None:
    found = Confidence(0.26, -1.1).of(np.array([-1e9, -4000.0, 0.0, 1e9]))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= 0).all()
    assert found[-1] == 1
