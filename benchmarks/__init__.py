"""One script per claim. A package, or the one of this name that pyarrow 17 brings would be found instead."""
