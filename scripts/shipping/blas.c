/* What numpy's core is linked to of BLAS and LAPACK, in plain loops: 20 kB instead of the 28 MB of
 * OpenBLAS. We use no linear algebra, but `import numpy` loads it. What numpy.linalg needs is not
 * here: it ends the process with a message, and a linter keeps it out of our code. */

#include <complex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int64_t number;
enum { ROWS = 101, AS_IS = 111, CONJUGATED = 113, UPPER = 121 };

static number first(number count, number step) { return step < 0 ? (1 - count) * step : 0; }

/* Where row `r`, column `c` of op(A) lies; A is stored by rows or by columns. */
static number place(int order, int op, number leading, number r, number c) {
    return (order == ROWS) == (op == AS_IS) ? r * leading + c : c * leading + r;
}

/* T: the type. V: how a factor is passed, GET: how it is read. CONJ: its conjugate. */
#define FUNCTIONS(L, T, V, GET, CONJ)                                                              \
    static T L##_sum(number n, const T *x, number dx, const T *y, number dy, int conjugated) {     \
        T sum = 0;                                                                                 \
        x += first(n, dx), y += first(n, dy);                                                      \
        for (number i = 0; i < n; i++)                                                             \
            sum += (conjugated ? CONJ(x[i * dx]) : x[i * dx]) * y[i * dy];                         \
        return sum;                                                                                \
    }                                                                                              \
    static void L##_put(T *at, T alpha, T sum, T beta) {                                           \
        *at = alpha * sum + (beta == 0 ? 0 : beta * *at);                                          \
    }                                                                                              \
    void scipy_cblas_##L##axpy64_(number n, V a, const T *x, number dx, T *y, number dy) {         \
        x += first(n, dx), y += first(n, dy);                                                      \
        for (number i = 0; i < n; i++) y[i * dy] += GET(T, a) * x[i * dx];                         \
    }                                                                                              \
    void scipy_cblas_##L##gemm64_(int order, int opa, int opb, number m, number n, number k, V a,  \
                                  const T *A, number lda, const T *B, number ldb, V b, T *C,       \
                                  number ldc) {                                                    \
        for (number r = 0; r < m; r++)                                                             \
            for (number c = 0; c < n; c++) {                                                       \
                T sum = 0;                                                                         \
                for (number i = 0; i < k; i++) {                                                   \
                    T one = A[place(order, opa, lda, r, i)], other = B[place(order, opb, ldb, i, c)]; \
                    sum += (opa == CONJUGATED ? CONJ(one) : one) *                                 \
                           (opb == CONJUGATED ? CONJ(other) : other);                              \
                }                                                                                  \
                L##_put(C + place(order, AS_IS, ldc, r, c), GET(T, a), sum, GET(T, b));            \
            }                                                                                      \
    }                                                                                              \
    void scipy_cblas_##L##gemv64_(int order, int op, number rows, number columns, V a, const T *A, \
                                  number lda, const T *x, number dx, V b, T *y, number dy) {       \
        number m = op == AS_IS ? rows : columns, n = op == AS_IS ? columns : rows;                 \
        x += first(n, dx), y += first(m, dy);                                                      \
        for (number r = 0; r < m; r++) {                                                           \
            T sum = 0;                                                                             \
            for (number c = 0; c < n; c++) {                                                       \
                T one = A[place(order, op, lda, r, c)];                                            \
                sum += (op == CONJUGATED ? CONJ(one) : one) * x[c * dx];                           \
            }                                                                                      \
            L##_put(y + r * dy, GET(T, a), sum, GET(T, b));                                        \
        }                                                                                          \
    }                                                                                              \
    void scipy_cblas_##L##syrk64_(int order, int half, int op, number n, number k, V a,            \
                                  const T *A, number lda, V b, T *C, number ldc) {                 \
        for (number r = 0; r < n; r++)                                                             \
            for (number c = half == UPPER ? r : 0; c < (half == UPPER ? n : r + 1); c++) {         \
                T sum = 0;                                                                         \
                for (number i = 0; i < k; i++)                                                     \
                    sum += A[place(order, op, lda, r, i)] * A[place(order, op, lda, c, i)];        \
                L##_put(C + place(order, AS_IS, ldc, r, c), GET(T, a), sum, GET(T, b));            \
            }                                                                                      \
    }

#define VALUE(T, factor) (factor)
#define TARGET(T, factor) (*(const T *)(factor))
#define SAME(value) (value)

FUNCTIONS(s, float, float, VALUE, SAME)
FUNCTIONS(d, double, double, VALUE, SAME)
FUNCTIONS(c, float complex, const void *, TARGET, conjf)
FUNCTIONS(z, double complex, const void *, TARGET, conj)

float scipy_cblas_sdot64_(number n, const float *x, number dx, const float *y, number dy) {
    return s_sum(n, x, dx, y, dy, 0);
}

double scipy_cblas_ddot64_(number n, const double *x, number dx, const double *y, number dy) {
    return d_sum(n, x, dx, y, dy, 0);
}

#define COMPLEX_DOT(L, T, KIND, CONJUGATE)                                                         \
    void scipy_cblas_##L##dot##KIND##_sub64_(number n, const T *x, number dx, const T *y,          \
                                             number dy, T *out) {                                  \
        *out = L##_sum(n, x, dx, y, dy, CONJUGATE);                                                \
    }

COMPLEX_DOT(c, float complex, u, 0)
COMPLEX_DOT(c, float complex, c, 1)
COMPLEX_DOT(z, double complex, u, 0)
COMPLEX_DOT(z, double complex, c, 1)

#define ABSENT(NAME)                                                                               \
    void scipy_##NAME##_64_(void) {                                                                \
        fputs("numpy.linalg is not part of this folder (" #NAME ").\n", stderr);                   \
        abort();                                                                                   \
    }
#define ABSENT_ALL(L)                                                                              \
    ABSENT(L##copy) ABSENT(L##gelsd) ABSENT(L##gesdd) ABSENT(L##gesv) ABSENT(L##getrf) ABSENT(L##potrf)

ABSENT_ALL(s) ABSENT_ALL(d) ABSENT_ALL(c) ABSENT_ALL(z)
ABSENT(sgeev) ABSENT(dgeev) ABSENT(zgeev) ABSENT(ssyevd) ABSENT(dsyevd) ABSENT(cheevd) ABSENT(zheevd)
ABSENT(dgeqrf) ABSENT(zgeqrf) ABSENT(dorgqr) ABSENT(zungqr)
