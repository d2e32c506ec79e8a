"""An index as a tool for assistants, over the Model Context Protocol."""
