"""Newton's method for logistic and softmax models."""
