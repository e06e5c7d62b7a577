// The tanh form, x (1 + tanh(z)) / 2, as x / (1 + exp(-2 z)): without its cancellation, and 0 where
// 1 + tanh is 0 in doubles. z = sqrt(2 / pi) (x + 0.044715 x^3).
FN vf gelu_tanh_(vf x) {
    vf e = exp_(x * (-1.59576912f - 0.0713548163f * x * x));
    return x * select(e > 1.8e16f, splat(0.0f), quotient(splat(1.0f), 1.0f + e));
}
