// tanh(x) = x P(x^2) / Q(x^2) up to 9.02, where it rounds to 1; minimax, fitted here: 2.1e-8.
FN vf tanh_(vf x) {
    vf c = clamp_(x, -9.02f, 9.02f), s = c * c;
    vf p = splat(1.33193048e-8f);
    p = p * s + 2.05836677e-5f;
    p = p * s + 0.00349404686f;
    p = p * s + 0.133797288f;
    p = p * s + 1.0f;
    vf q = splat(7.76212062e-7f);
    q = q * s + 0.000328311231f;
    q = q * s + 0.0258711204f;
    q = q * s + 0.467130452f;
    q = q * s + 1.0f;
    return quotient(c * p, q);
}
