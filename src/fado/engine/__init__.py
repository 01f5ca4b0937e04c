"""Engines that fit and predict: LightGBM on shared bins, and any scikit-learn estimator."""
