"""Linear algebra: factorizations, solutions, inverses, determinants and distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import log
from msdump.mindspore.ops.declaration import COMMON, COMMON_FLOAT, FLOAT, operator


def _adjoint(matrix: Any) -> Any:
    return matrix.mH


# -- determinants and inverses -----------------------------------------------------------------------------------------


@operator("MatrixDeterminant", operands=FLOAT)
def matrix_determinant(torch: Any, input: Tensor) -> Any:
    """Determinants of matrices."""
    return torch.linalg.det(input)


@operator("LogMatrixDeterminant", operands=FLOAT)
def log_matrix_determinant(torch: Any, input: Tensor) -> tuple[Any, ...]:
    """The signs and the logarithms of the absolute values of determinants."""
    return tuple(torch.linalg.slogdet(input))


det, slogdet = matrix_determinant, log_matrix_determinant


def logdet(input: Tensor) -> Any:
    """Logarithms of determinants; NaN for a negative one."""
    return log(matrix_determinant(input))


@operator("MatrixInverse", init="adjoint", operands=FLOAT)
def _matrix_inverse(torch: Any, x: Tensor, adjoint: bool = False) -> Any:
    """Inverses of matrices; adjoint: of their conjugate transposes."""
    result = torch.linalg.inv(x)
    return torch.clone(result.mH).contiguous() if adjoint else result


def inverse(input: Tensor) -> Any:
    """Inverses of matrices."""
    return _matrix_inverse(input)


@operator("Inv")
def inv(torch: Any, x: Tensor) -> Any:
    """1 / x, element by element."""
    return torch.reciprocal(x).to(x.dtype)


@operator("Pinv", operands=FLOAT)
def _pinv(torch: Any, x: Tensor, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Pseudo-inverses; singular values below max(atol, rtol * largest) count as zero."""
    return torch.linalg.pinv(x, atol=atol, rtol=rtol, hermitian=hermitian)


def pinv(x: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Pseudo-inverses; singular values below max(atol, rtol * largest) count as zero."""
    return _pinv(x, atol, rtol, hermitian)


@operator("MatrixPower", init="n")
def matrix_power(torch: Any, input: Tensor, n: int) -> Any:
    """Whole powers of square matrices; those of integers are not negative."""
    if not (torch.is_floating_point(input) or torch.is_complex(input)):
        if n < 0:
            raise ValueError(f"expected n >= 0 for integers, got {n}.")
        result = torch.eye(input.shape[-1], dtype=input.dtype, device=getattr(input, "device")).expand(input.shape)  # noqa: B009
        for _ in range(n):
            result = torch.matmul(result, input)
        return torch.clone(result)
    return torch.linalg.matrix_power(input, n)


@operator("MatrixExp", operands=FLOAT)
def matrix_exp(torch: Any, input: Tensor) -> Any:
    """Exponentials of square matrices."""
    # PyTorch takes one axis of matrices at most where they are not contiguous.
    matrices = torch.flatten(input, 0, -3) if input.ndim > 3 else input
    return torch.reshape(torch.linalg.matrix_exp(matrices), input.shape)


@operator("MatrixLogarithm", has_gradient=False)
def _matrix_logarithm(torch: Any, x: Tensor) -> Any:
    """Logarithms of square complex matrices whose eigenvectors are independent."""
    values, vectors = torch.linalg.eig(x)
    return (vectors @ torch.diag_embed(torch.log(values)) @ torch.linalg.inv(vectors)).to(x.dtype)


# -- factorizations ----------------------------------------------------------------------------------------------------


@operator("Cholesky", init="upper", operands=FLOAT)
def cholesky(torch: Any, input_x: Tensor, upper: bool = False) -> Any:
    """The lower, or upper, triangular factor of positive definite matrices."""
    return torch.linalg.cholesky(input_x, upper=upper)


@operator("CholeskyInverse", init="upper", operands=FLOAT)
def cholesky_inverse(torch: Any, input_x: Tensor, upper: bool = False) -> Any:
    """The inverse of the matrix that a Cholesky factor stands for."""
    return torch.cholesky_inverse(input_x, upper)


@operator("CholeskySolve", init="upper", operands=COMMON_FLOAT)
def cholesky_solve(torch: Any, input: Tensor, input2: Tensor, upper: bool = False) -> Any:
    """x of A x = input, where input2 is the Cholesky factor of A."""
    return torch.cholesky_solve(input, input2, upper)


@operator("Qr", init="full_matrices", operands=FLOAT)
def _qr(torch: Any, x: Tensor, full_matrices: bool = False) -> tuple[Any, ...]:
    """An orthogonal and an upper triangular factor."""
    return tuple(torch.linalg.qr(x, "complete" if full_matrices else "reduced"))


def qr(input: Tensor, mode: str = "reduced") -> Any:
    """An orthogonal and an upper triangular factor; "complete": the orthogonal one is square."""
    if mode not in ("reduced", "complete"):
        raise TypeError(f"For 'qr', mode must be one of ['reduced', 'complete'], but got {mode}.")
    return _qr(input, mode == "complete")


@operator("Svd", init="full_matrices compute_uv", operands=FLOAT)
def _svd(torch: Any, input: Tensor, full_matrices: bool = False, compute_uv: bool = True) -> tuple[Any, ...]:
    """Singular values, and the matrices of left and right singular vectors as columns; without compute_uv one zero."""
    if not compute_uv:
        values = torch.linalg.svdvals(input)
        return values, values.new_zeros(1), values.new_zeros(1)
    left, values, right = torch.linalg.svd(input, full_matrices)
    return values, left, right.mH.contiguous()


def svd(input: Tensor, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Singular values, and the matrices of left and right singular vectors as columns."""
    results = _svd(input, full_matrices, compute_uv)
    return results if compute_uv else results[0]


@operator("Eig", init="compute_v", operands=FLOAT)
def _eig(torch: Any, x: Tensor, compute_v: bool = False) -> tuple[Any, ...]:
    """Eigenvalues of square matrices, and eigenvectors as columns; complex. Without compute_v a zero."""
    if x.dtype in (torch.float16, torch.bfloat16):
        raise TypeError(f"expected numbers of at least 4 bytes, got {x.dtype}.")
    if compute_v:
        return tuple(torch.linalg.eig(x))
    values = torch.linalg.eigvals(x)
    return values, values.new_zeros(())


def eig(A: Tensor) -> Any:
    """Eigenvalues of square matrices, and eigenvectors as columns; complex."""
    return _eig(A, True)


@operator("Geqrf", operands=FLOAT)
def geqrf(torch: Any, input: Tensor) -> tuple[Any, ...]:
    """The QR factors as LAPACK keeps them: R and the vectors of reflections in one matrix, and their scales."""
    return tuple(torch.geqrf(input))


@operator("Orgqr", operands=COMMON_FLOAT)
def orgqr(torch: Any, input: Tensor, input2: Tensor) -> Any:
    """The first columns of the orthogonal matrix that reflections (of `geqrf`) stand for."""
    return torch.linalg.householder_product(input, input2)


@operator("Ormqr", init="left transpose", operands=COMMON_FLOAT)
def ormqr(torch: Any, input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Any:
    """A matrix times the orthogonal one that reflections (of `geqrf`) stand for, from the left or the right."""
    return torch.ormqr(input, tau, other, left, transpose)


@operator("LuUnpack", init="unpack_data unpack_pivots")
def _lu_unpack(
    torch: Any, LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, ...]:
    """The permutation and the two triangular factors of a packed LU factorization."""
    rows, shape = LU_data.shape[-2], (*LU_data.shape[:-2], min(LU_data.shape[-2:]))
    if LU_pivots.shape != shape:
        raise ValueError(f"expected pivots of shape {shape}, got {tuple(LU_pivots.shape)}.")
    if LU_pivots.device.type != "meta" and ((LU_pivots < 1) | (LU_pivots > rows)).any():  # type: ignore[attr-defined]
        # PyTorch writes outside of its memory for them.
        raise ValueError(f"expected pivots in [1, {rows}], got {LU_pivots.tolist()}.")
    permutation, lower, upper = torch.lu_unpack(LU_data, LU_pivots)
    return permutation, lower, upper


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """The permutation and the two triangular factors of a packed LU factorization; None for what is not unpacked."""
    permutation, lower, upper = _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)
    factors = (lower, upper) if unpack_data else (None, None)
    return permutation if unpack_pivots else None, *factors


# -- solutions ---------------------------------------------------------------------------------------------------------


@operator("MatrixSolve", init="adjoint", operands=COMMON_FLOAT)
def matrix_solve(torch: Any, matrix: Tensor, rhs: Tensor, adjoint: bool = False) -> Any:
    """x of matrix x = rhs; adjoint: of its conjugate transpose."""
    return torch.linalg.solve(_adjoint(matrix) if adjoint else matrix, rhs)


@operator("MatrixTriangularSolve", init="lower adjoint", operands=COMMON_FLOAT)
def _triangular_solve(torch: Any, matrix: Tensor, rhs: Tensor, lower: bool = True, adjoint: bool = False) -> Any:
    """x of matrix x = rhs for a triangular matrix; adjoint: of its conjugate transpose."""
    return torch.linalg.solve_triangular(_adjoint(matrix) if adjoint else matrix, rhs, upper=lower == adjoint)


@operator("MatrixSolveLs", init="fast", operands=FLOAT)
def _matrix_solve_ls(torch: Any, matrix: Tensor, rhs: Tensor, l2_regularizer: Tensor, fast: bool = True) -> Any:
    """The x of the least |matrix x - rhs| ** 2 + l2_regularizer * |x| ** 2."""
    weight = l2_regularizer.to(matrix.dtype)
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=getattr(matrix, "device"))  # noqa: B009
    return torch.linalg.solve(_adjoint(matrix) @ matrix + weight * eye, _adjoint(matrix) @ rhs)


@operator("LuSolve")
def lu_solve(torch: Any, b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    """x of A x = b, where A is given as a packed LU factorization."""
    columns = b if b.ndim > 1 else b[:, None]
    result = torch.linalg.lu_solve(LU_data, LU_pivots, columns)
    return result if b.ndim > 1 else result[..., 0]


@operator("Lstsq", init="fast l2_regularizer", operands=COMMON_FLOAT)
def lstsq(torch: Any, input: Tensor, A: Tensor, fast: bool = True, l2_regularizer: float = 0.0) -> Any:
    """The x of the least |input x - A|; of several the shortest."""
    columns = A if A.ndim > 1 else A[:, None]
    rows: Any = input  # PyTorch inverts no two-byte floats
    inverse = torch.linalg.pinv(rows.float() if rows.itemsize == 2 else rows)
    return inverse.to(rows.dtype) @ columns


@operator("TridiagonalMatMul", operands=COMMON_FLOAT)
def _tridiagonal_matmul(torch: Any, superdiag: Tensor, maindiag: Tensor, subdiag: Tensor, rhs: Tensor) -> Any:
    """A matrix of three diagonals, each (..., 1, M), times rhs; the ends that lie outside of it are not used."""
    above, main, below = (torch.movedim(each, -1, -2) for each in (superdiag, maindiag, subdiag))
    zero = torch.zeros_like(rhs[..., :1, :])
    after = torch.cat([rhs[..., 1:, :], zero], -2)
    before = torch.cat([zero, rhs[..., :-1, :]], -2)
    return above * after + main * rhs + below * before


# -- products and distances --------------------------------------------------------------------------------------------


@operator("Einsum", init="equation", operands=COMMON)
def _einsum(torch: Any, equation: str, operands: Sequence[Tensor]) -> Any:
    """Products of operands summed over the letters that the result lacks."""
    return torch.einsum(equation, *operands)


def einsum(equation: str, *operands: Any) -> Any:
    """Products of operands summed over the letters that the result lacks."""
    parts = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    return _einsum(equation, tuple(parts))


@operator("Cross", init="dim", operands=COMMON)
def _cross(torch: Any, input: Tensor, other: Tensor, dim: int = -65530) -> Any:
    """Cross products of vectors along an axis; without one the first of size 3."""
    if dim == -65530 and 3 not in input.shape:
        raise ValueError(f"expected an axis of size 3, got shape {tuple(input.shape)}.")
    axis = input.shape.index(3) if dim == -65530 else dim
    return torch.linalg.cross(input, other, dim=axis)


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Any:
    """Cross products of vectors along an axis; None: the first of size 3."""
    return _cross(input, other, -65530 if dim is None else dim)


@operator("Ger", operands=COMMON)
def ger(torch: Any, input: Tensor, vec2: Tensor) -> Any:
    """All products of an element of either vector."""
    return torch.outer(input, vec2)


@operator("Cdist", init="p", operands=COMMON_FLOAT)
def cdist(torch: Any, x1: Tensor, x2: Tensor, p: float = 2.0) -> Any:
    """p-norms of the differences of the rows of two matrices."""
    return torch.cdist(x1, x2, p, "donot_use_mm_for_euclid_dist")


@operator("Pdist", init="p", operands=FLOAT)
def pdist(torch: Any, input: Tensor, p: float = 2.0) -> Any:
    """p-norms of the differences of all pairs of rows."""
    return torch.pdist(input, p)


publish(__name__)
