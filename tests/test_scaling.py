"""Block scaling: the values of elements and scale factors, how they are chosen, and what cannot be quantised."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ptxmma.arrays import elements as types
from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.matrices import scaling
from ptxmma.matrices.scaling import Format, float_codes
from ptxmma.model import ElementType

_NAMES = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4", "nvfp4")
_NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3", "ue5m3")
_ROWS, _BLOCKS = 3, 2
_finfo: Any = ml_dtypes.finfo


@pytest.fixture(scope="module")
def formats(catalog: Catalog) -> dict[str, Format]:
    return scaling.formats(database=catalog.database)


def _number(code: int, element: ElementType) -> float:
    """The value of a code by definition: the spec's widths, bias, infinity and NaN."""
    width = element.exponent + element.mantissa
    magnitude, negative = code & (1 << width) - 1, code >> width & element.sign
    exponent, fraction = divmod(magnitude, 1 << element.mantissa)
    if element.infinity and exponent == (1 << element.exponent) - 1:
        number = math.nan if fraction else math.inf
    elif element.nan and magnitude == (1 << width) - 1:
        number = math.nan
    elif element.mantissa and exponent == 0:
        number = math.ldexp(fraction, 1 - element.bias - element.mantissa)
    else:
        number = math.ldexp((1 << element.mantissa) + fraction, exponent - element.bias - element.mantissa)
    return -number if negative else number


def _numbers(element: ElementType) -> list[tuple[float, int]]:
    """Every finite number that is not negative with its code, ascending."""
    width = element.exponent + element.mantissa
    numbers = [(_number(code, element), code) for code in range(1 << width)]
    return [(number, code) for number, code in numbers if math.isfinite(number)]


def _nearest(value: float, element: ElementType) -> int:
    """The code nearest to a number, the even one of two, by comparing all."""
    magnitude = min(abs(value), element.largest)
    best = min(_numbers(element), key=lambda one: (abs(magnitude - one[0]), one[1] & 1))[1]
    return best | (1 << element.exponent + element.mantissa if math.copysign(1, value) < 0 else 0)


def _expected(values: list[float], form: Format) -> tuple[int, list[int]]:
    """Scale and elements of one block in exact arithmetic."""
    peak = max(map(abs, values))
    if form.scale.mantissa:
        scale = _nearest(peak / form.element.largest, form.scale)
    else:  # OCP MX v1.0, section 6.3
        powers = [number for number, _ in _numbers(form.element) if number and math.frexp(number)[0] == 0.5]
        exponent = math.frexp(peak)[1] - math.frexp(max(powers))[1] if peak else -math.inf
        scale = int(max(0, min(exponent + form.scale.bias, form.scale.largest_code)))
    factor = _number(scale, form.scale)
    return scale, [_nearest(value / factor if factor else math.copysign(0, value), form.element) for value in values]


def _random(shape: tuple[int, ...], seed: int, dtype: Any = np.float32) -> Any:
    """Numbers of very different magnitudes, zeros among them."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape) * np.exp2(random.integers(-12, 12, shape))
    return np.where(random.random(shape) < 0.1, 0, values).astype(dtype)


# --- types ------------------------------------------------------------------------------------------------------------------


def test_the_spec_names_the_formats(formats: dict[str, Format]) -> None:
    assert tuple(formats) == _NAMES


@pytest.mark.parametrize("name", _NARROW)
def test_every_code_is_decoded_as_the_definition_says(catalog: Catalog, name: str) -> None:
    element = layouts.element_type(catalog.database.spec, name)
    codes = range(1 << element.exponent + element.mantissa + element.sign)
    expected = np.array([_number(code, element) for code in codes], np.float32)
    np.testing.assert_array_equal(float_codes.decoder(element)[: len(codes)], expected)


@pytest.mark.parametrize(
    ("name", "largest", "emax"), [("e4m3", 448, 8), ("e5m2", 57344, 15), ("e3m2", 28, 4), ("e2m3", 7.5, 2), ("e2m1", 6, 2)]
)
def test_the_largest_numbers_are_those_of_the_standard(catalog: Catalog, name: str, largest: float, emax: int) -> None:
    element = layouts.element_type(catalog.database.spec, name)
    assert (element.largest, element.emax) == (largest, emax)
    assert largest == max(number for number, _ in _numbers(element)) == float(_finfo(types.dtype(element)).max)


@pytest.mark.parametrize("work", [float_codes.FLOAT32, float_codes.FLOAT64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in _NARROW if name != "ue8m0"])
def test_ties_go_to_even_and_neighbours_of_ties_do_not(catalog: Catalog, name: str, work: Any) -> None:
    element = layouts.element_type(catalog.database.spec, name)
    numbers = _numbers(element)
    for (low, code), (high, _) in itertools.pairwise(numbers):
        middle = work.dtype.type((low + high) / 2)
        given = np.array([low, np.nextafter(middle, work.dtype.type(0)), middle, np.nextafter(middle, work.dtype.type(np.inf))], work.dtype)
        expected = [code, code, code + (code & 1), code + 1]
        assert float_codes.encode(given.copy(), element, work).tolist() == expected
        if element.sign:
            assert float_codes.encode(-given, element, work).tolist() == [1 << element.bits - 1 | one for one in expected]
    beyond = np.array([numbers[-1][0] * 1.01, np.finfo(work.dtype).max, np.inf], work.dtype)
    assert float_codes.encode(beyond, element, work).tolist() == [numbers[-1][1]] * 3


# --- matrices ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("name", _NAMES)
def test_blocks_equal_exact_arithmetic(formats: dict[str, Format], name: str, dtype: Any) -> None:
    form = formats[name]
    matrix = _random((_ROWS, _BLOCKS * form.block), 1, dtype)
    elements, scales = scaling.quantise(matrix, form, saturate=True)
    assert elements.dtype == types.dtype(form.element)
    assert scales.dtype == types.dtype(form.scale)
    assert elements.shape == matrix.shape
    assert scales.shape == (_ROWS, _BLOCKS)
    for row, number in itertools.product(range(_ROWS), range(_BLOCKS)):
        part = slice(number * form.block, (number + 1) * form.block)
        scale, codes = _expected([float(value) for value in matrix[row, part]], form)
        assert scales.view(np.uint8)[row, number] == scale
        assert elements.view(np.uint8)[row, part].tolist() == codes


@pytest.mark.parametrize("name", _NAMES)
@given(data=st.data())
def test_the_error_is_half_a_step_unless_saturated(formats: dict[str, Format], name: str, data: st.DataObject) -> None:
    form = formats[name]
    shape = (2, form.block)
    numbers = st.floats(-(2.0**20), 2.0**20, width=32)
    matrix = data.draw(arrays.arrays(np.float32, shape, elements=numbers))
    elements, scales = scaling.quantise(matrix, form, tensor_scale=1, saturate=True)
    back = scaling.dequantise(elements, scales, form)
    factors = scales.astype(np.float64)
    magnitude = np.abs(types.numbers(elements.view(np.uint8), form.element))
    exponents = np.maximum(np.frexp(magnitude)[1] - 1, 1 - form.element.bias)
    half = np.ldexp(0.5, exponents - form.element.mantissa) * factors
    saturated = np.abs(matrix) > form.element.largest * factors  # all of a block whose factor was rounded to zero
    error = np.abs(back.astype(np.float64) - matrix)
    assert np.all((error <= half) | saturated)
    expected = np.where(np.broadcast_to(factors, matrix.shape) > 0, form.element.largest, 0)
    assert np.all(magnitude[saturated] == expected[saturated])


@pytest.mark.parametrize("name", _NAMES)
def test_quantising_what_was_quantised_changes_nothing(formats: dict[str, Format], name: str) -> None:
    form = formats[name]
    once = scaling.quantise(_random((16, 8 * form.block), 2), form, saturate=True)
    again = scaling.quantise(scaling.dequantise(*once, form), form)
    np.testing.assert_array_equal(again.scales.view(np.uint8), once.scales.view(np.uint8))
    np.testing.assert_array_equal(again.elements.view(np.uint8), once.elements.view(np.uint8))


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("exponent", [-149, -140, -127, -126, -30, 0, 100, 127])
def test_powers_of_two_over_the_whole_range(formats: dict[str, Format], name: str, exponent: int) -> None:
    form = formats[name]
    matrix = np.zeros((1, form.block), np.float32)
    matrix[0, 1], matrix[0, 2] = math.ldexp(1, exponent), -math.ldexp(1, exponent)
    elements, scales = scaling.quantise(matrix, form, tensor_scale=1, saturate=True)
    scale, codes = _expected(matrix[0].tolist(), form)
    assert (scales.view(np.uint8)[0, 0], elements.view(np.uint8)[0].tolist()) == (scale, codes)


def test_worked_examples(formats: dict[str, Format]) -> None:
    # 6.5 of MXFP4: the largest power of two is 4 in both, so the factor is 1; 6.5 saturates, 5 and 2.5 are ties.
    values = np.zeros((1, 32), np.float32)
    values[0, :5] = 6.5, 5, 2.5, -0.25, 3.5
    elements, scales = scaling.quantise(values, formats["mxfp4"])
    assert scales.view(np.uint8).tolist() == [[127]]
    assert elements[0, :5].astype(np.float32).tolist() == [6, 4, 2, -0.0, 4]
    # NVFP4: 12 / 6 = 2; 1 becomes 0.5, 5 becomes 2.5, a tie.
    values = np.zeros((1, 16), np.float32)
    values[0, :3] = -12, 1, 5
    elements, scales = scaling.quantise(values, formats["nvfp4"])
    assert scales.astype(np.float32).tolist() == [[2]]
    assert elements[0, :3].astype(np.float32).tolist() == [-6, 0.5, 2]
    # 448 is the largest of E4M3, so it needs no factor; 449 to 511 saturate with the same one, 512 needs the next.
    for value, code, back in ((448, 127, 448), (511, 127, 448), (512, 128, 512)):
        block = np.full((1, 32), value, np.float32)
        elements, scales = scaling.quantise(block, formats["mxfp8_e4m3"])
        assert scales.view(np.uint8).tolist() == [[code]]
        assert np.all(scaling.dequantise(elements, scales, formats["mxfp8_e4m3"]) == back)


@pytest.mark.parametrize("name", _NAMES)
def test_zeros_keep_their_signs_and_take_the_smallest_factor(formats: dict[str, Format], name: str) -> None:
    form = formats[name]
    matrix = np.zeros((2, form.block), np.float32)
    matrix[1] = -0.0
    elements, scales = scaling.quantise(matrix, form)
    assert np.all(scales.view(np.uint8) == 0)
    back = scaling.dequantise(elements, scales, form)
    np.testing.assert_array_equal(back, matrix)
    np.testing.assert_array_equal(np.signbit(back), np.signbit(matrix))


def test_a_factor_of_nan_makes_its_block_nan(formats: dict[str, Format]) -> None:
    for name, bad in (("mxfp4", 0xFF), ("nvfp4", 0x7F)):
        form = formats[name]
        elements, scales = scaling.quantise(np.ones((2, 2 * form.block), np.float32), form)
        scales.view(np.uint8)[1, 0] = bad
        back = scaling.dequantise(elements, scales, form)
        assert np.isnan(back[1, : form.block]).all()
        assert np.isfinite(back[0]).all()
        assert np.isfinite(back[1, form.block :]).all()


@pytest.mark.parametrize("name", _NAMES)
def test_the_axis_decides_which_elements_are_neighbours(formats: dict[str, Format], name: str) -> None:
    form = formats[name]
    matrix = _random((2 * form.block, 5 * form.block), 3)
    elements, scales = scaling.quantise(matrix, form, axis=0, saturate=True)
    turned = scaling.quantise(np.ascontiguousarray(matrix.T), form, saturate=True)
    np.testing.assert_array_equal(elements.T, turned.elements)
    np.testing.assert_array_equal(scales.T, turned.scales)
    view = scaling.quantise(matrix.T, form, saturate=True)
    np.testing.assert_array_equal(view.elements, turned.elements)
    np.testing.assert_array_equal(scaling.dequantise(elements, scales, form, axis=0), scaling.dequantise(*turned, form).T)


def test_batches_and_large_matrices_equal_their_parts(formats: dict[str, Format]) -> None:
    form = formats["nvfp4"]
    batch = _random((2, 3, 48, 4096), 4)
    for axis in (-1, -2):
        elements, scales = scaling.quantise(batch, form, axis=axis, saturate=True)
        back = scaling.dequantise(elements, scales, form, axis=axis)
        for place in np.ndindex(2, 3):
            part = scaling.quantise(batch[place], form, axis=axis, saturate=True)
            np.testing.assert_array_equal(elements[place], part.elements)
            np.testing.assert_array_equal(scales[place], part.scales)
            np.testing.assert_array_equal(back[place], scaling.dequantise(*part, form, axis=axis))


def test_padding_appends_zeros(formats: dict[str, Format]) -> None:
    form = formats["mxfp4"]
    matrix = _random((3, 40), 5)
    elements, scales = scaling.quantise(matrix, form, pad=True)
    assert (elements.shape, scales.shape) == ((3, 64), (3, 2))
    assert np.all(elements[:, 40:] == 0)
    np.testing.assert_array_equal(elements[:, :32], scaling.quantise(matrix[:, :32], form).elements)


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_the_shape_crops_padding(formats: dict[str, Format], axis: int) -> None:
    matrix = _random((3, 40, 50), 5)
    packed = scaling.quantise(matrix, formats["mxfp4"], axis=axis, pad=True)
    whole = scaling.dequantise(*packed, formats["mxfp4"], axis=axis)
    cut = whole[:3, :40, :50]
    shapes: list[tuple[int, ...]] = [matrix.shape] + [matrix.shape[1:]] * (axis != 0)
    for shape in shapes:
        np.testing.assert_array_equal(scaling.dequantise(*packed, formats["mxfp4"], axis=axis, shape=shape), cut)
    for wrong in ((3, 40, 70), (33, 40, 50), (50,), 50, (40.0, 50.0)):
        with pytest.raises(ValueError, match="does not fit elements that hold a matrix of shape"):
            scaling.dequantise(*packed, formats["mxfp4"], axis=axis, shape=wrong)  # type: ignore[arg-type]


def test_a_vector_is_cropped_too(formats: dict[str, Format]) -> None:
    packed = scaling.quantise(_random((40,), 5), formats["mxfp4"], pad=True)
    assert scaling.dequantise(*packed, formats["mxfp4"], shape=(40,)).shape == (40,)


def test_blocks_that_would_saturate_are_refused(formats: dict[str, Format]) -> None:
    form = formats["nvfp4"]
    matrix = np.ones((4, 64), np.float32)
    matrix[1, 40], matrix[3, 0] = -10_000, 65_504
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        peak = float(abs(matrix.astype(dtype)[1, 40]))
        with pytest.raises(
            ValueError,
            match=rf"scales\[1, 2\] would be above 448.0, the largest ue4m3: its block reaches {peak}, more than 2688.0, and 2 blocks are"
            rf" like that; divide .* tensor_scale=tensor_scale\(matrix, format\), or pass saturate=True",
        ):
            scaling.quantise(matrix.astype(dtype), form)
    with pytest.raises(ValueError, match=r"scales\[0, 2\] would be above .* divided by tensor_scale = 9.99.*e-06 reaches 100000.0, more"):
        scaling.quantise(np.repeat(np.array([[0, 0, 1, 1]], np.float32), 16, axis=1), form, tensor_scale=1e-5)
    saturated = scaling.quantise(matrix, form, saturate=True)
    assert scaling.dequantise(*saturated, form)[[1, 3], [40, 0]].tolist() == [-2688, 2688]
    clamped = scaling.quantise(matrix.clip(-2688, 2688), form)
    np.testing.assert_array_equal(saturated.elements, clamped.elements)
    np.testing.assert_array_equal(saturated.scales, clamped.scales)
    scale = float(scaling.tensor_scale(matrix, form))
    assert scaling.dequantise(*scaling.quantise(matrix, form, tensor_scale=scale), form, tensor_scale=scale)[3, 0] == 65_504


def test_what_rounds_to_the_largest_factor_does_not_saturate(formats: dict[str, Format]) -> None:
    form = formats["nvfp4"]
    most = np.float32(6 * 464)  # half way between 448 and the 480 that ue4m3 has no code for
    assert scaling.quantise(np.full((1, 16), most), form).scales.astype(np.float32) == 448
    with pytest.raises(ValueError, match=r"its block reaches 2784.000"):
        scaling.quantise(np.full((1, 16), np.nextafter(most, np.float32(np.inf))), form)


def test_powers_of_two_have_an_end_too(formats: dict[str, Format]) -> None:
    form = formats["mxfp4"]
    most = np.nextafter(2.0**130, 0)
    assert scaling.quantise(np.full((1, 32), most), form).scales.view(np.uint8) == 254
    with pytest.raises(
        ValueError, match=r"would be above 1.70.*e\+38, the largest ue8m0: .* and 1 block is like that; divide it first, or"
    ):
        scaling.quantise(np.full((1, 32), 2.0**130), form)
    assert scaling.quantise(np.full((1, 32), 2.0**130), form, saturate=True).scales.view(np.uint8) == 254


def test_blocks_that_would_be_lost_are_refused(formats: dict[str, Format]) -> None:
    """Weights of 1e-4 are ordinary, but a factor of ue4m3 is at least 2**-9; a tensor scale keeps them."""
    form = formats["nvfp4"]
    weights = np.ones((4, 64), np.float32)
    weights[2:, 16:48] = 1e-4
    for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        with pytest.raises(
            ValueError, match=r"^scales\[2, 1\] would be 0: its block reaches .*, too little for ue4m3, and 4 blocks are like"
        ):
            scaling.quantise(weights.astype(dtype), form)
        with pytest.raises(
            ValueError, match=r"^scales\[1, 2\] .*; divide the whole matrix first, with tensor_scale=tensor_scale\(matrix, format\)$"
        ):
            scaling.quantise(weights.astype(dtype).T, form, axis=0)
    small = weights * np.float32(1e-4)
    scale = scaling.tensor_scale(small, form)
    back = scaling.dequantise(*scaling.quantise(small, form, tensor_scale=float(scale)), form, tensor_scale=float(scale))
    np.testing.assert_allclose(back, small, rtol=1 / 4)
    assert not scaling.quantise(weights, form, tensor_scale=1).scales[2, 1], "what a scale of one's own loses is zero"
    smallest = np.full((1, 16), 6 * 2.0**-10, np.float64)  # of which the factor is a tie between 0 and 2**-9
    assert scaling.quantise(np.nextafter(smallest, 1), form).scales.astype(np.float32) == 2.0**-9
    with pytest.raises(ValueError, match=r"scales\[0, 0\] would be 0: its block reaches 0.005859375, .* 1 block is like that"):
        scaling.quantise(smallest, form)


def test_impossible_tensor_scales(formats: dict[str, Format]) -> None:
    with pytest.raises(
        ValueError, match=r"the matrix reaches 1e\+300: its tensor scale, 3\.7.*e\+296, is beyond float32; divide the matrix"
    ):
        scaling.tensor_scale(np.full((1, 16), 1e300), formats["nvfp4"])
    with pytest.raises(ValueError, match=r"the matrix: an array of shape \(0, 16\) has no elements"):
        scaling.tensor_scale(np.ones((0, 16), np.float32), formats["nvfp4"])
    with pytest.raises(ValueError, match="the matrix has dtype int64; it must be float16"):
        scaling.tensor_scale(np.ones((1, 16), np.int64), formats["nvfp4"])
    for name in _NAMES[:5]:
        with pytest.raises(ValueError, match="takes no tensor scale: factors of ue8m0 reach all of float32 by themselves"):
            scaling.tensor_scale(np.ones((1, 32), np.float32), formats[name])


def test_the_tensor_scale_divides_first(formats: dict[str, Format]) -> None:
    form = formats["nvfp4"]
    matrix = _random((8, 64), 6) * np.float32(1e6)
    whole = scaling.tensor_scale(matrix, form)
    assert whole == np.float32(float(np.abs(matrix).max()) / 6 / 448)
    scaled = scaling.quantise(matrix, form, tensor_scale=float(whole))
    divided = scaling.quantise(matrix / whole, form)
    np.testing.assert_array_equal(scaled.elements, divided.elements)
    np.testing.assert_array_equal(scaled.scales, divided.scales)
    assert scaled.scales.astype(np.float32).max() == 448
    back = scaling.dequantise(*scaled, form, tensor_scale=float(whole))
    np.testing.assert_array_equal(back, scaling.dequantise(*divided, form) * whole)
    assert scaling.tensor_scale(np.zeros((2, 2), np.float32), form) == 1


def test_torch_tensors_share_the_rules(formats: dict[str, Format]) -> None:
    torch = pytest.importorskip("torch")
    matrix = _random((4, 64), 7)
    for name in _NAMES:
        expected = scaling.quantise(matrix, formats[name], saturate=True)
        elements, scales = scaling.quantise(torch.from_numpy(matrix), formats[name], saturate=True)
        assert scales.dtype == (torch.float8_e4m3fn if name == "nvfp4" else torch.float8_e8m0fnu)
        assert elements.dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint8)
        assert elements.view(torch.uint8).numpy().tolist() == expected.elements.view(np.uint8).tolist()
        back = scaling.dequantise(elements, scales, formats[name])
        assert back.dtype == torch.float32
        np.testing.assert_array_equal(back.numpy(), scaling.dequantise(*expected, formats[name]))
    half = scaling.quantise(torch.from_numpy(matrix).bfloat16(), formats["mxfp4"])
    np.testing.assert_array_equal(
        half.elements.numpy(), scaling.quantise(matrix.astype(ml_dtypes.bfloat16), formats["mxfp4"]).elements.view(np.uint8)
    )


# --- instructions -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scaled(catalog: Catalog) -> list[Instruction]:
    scaled_ones = [
        instruction for instruction in catalog.all() if instruction.qualifiers.get("scale_vec") and instruction.qualifiers.get("stype")
    ]
    assert {instruction.sparse for instruction in scaled_ones} == {False, True}
    return scaled_ones


def test_an_instruction_says_its_format(scaled: list[Instruction]) -> None:
    for instruction in scaled:
        _, _, k = instruction.shape or (0, 0, 0)
        for operand, qualifier, axis in (("a", "atype", -1), ("b", "btype", -2)):
            form = scaling.of(instruction, operand)
            blocks = int(instruction.qualifiers["scale_vec"][-2])  # the 2 of scale_vec::2X
            assert (form.element.name, form.scale.name) == (instruction.qualifiers[qualifier], instruction.qualifiers["stype"])
            assert (form.block, form.axis) == (k // blocks, axis)


def test_named_formats_are_those_of_their_instructions(catalog: Catalog, scaled: list[Instruction], formats: dict[str, Format]) -> None:
    for entry in catalog.database.spec.block_formats:
        users = [scaling.of(one) for one in _users(scaled, entry.of) if one.qualifiers["atype"] == entry.element]
        assert users
        assert all(form == formats[entry.name] for form in users)


def _users(scaled: list[Instruction], of: Any) -> Iterator[Instruction]:
    for instruction in scaled:
        facts = instruction.variant.facts
        if any(all(facts.get(key, "") in values for key, values in condition.items()) for condition in of):
            yield instruction


def test_both_operands_of_an_instruction_multiply(scaled: list[Instruction]) -> None:
    instruction = next(one for one in scaled if one.qualifiers["stype"] == "ue4m3" and not one.sparse)
    m, n, k = instruction.shape or (0, 0, 0)
    a, b = _random((m, k), 8), _random((k, n), 9)
    left, right = scaling.of(instruction, "a"), scaling.of(instruction, "b")
    qa, qb = scaling.quantise(a, left, saturate=True), scaling.quantise(b, right, saturate=True)
    assert qa.scales.shape == (m, k // left.block)
    assert qb.scales.shape == (k // right.block, n)
    for layout, scales in ((instruction.scales("a"), qa.scales), (instruction.scales("b"), qb.scales)):
        np.testing.assert_array_equal(layout.unpack(layout.pack(scales)).view(np.uint8), scales.view(np.uint8))
    total = np.zeros((m, n))
    for number in range(k // left.block):
        part = slice(number * left.block, (number + 1) * left.block)
        product = qa.elements[:, part].astype(np.float64) @ qb.elements[part].astype(np.float64)
        total += product * qa.scales[:, number, None].astype(np.float64) * qb.scales[number].astype(np.float64)
    exact = scaling.dequantise(*qa, left).astype(np.float64) @ scaling.dequantise(*qb, right).astype(np.float64)
    np.testing.assert_allclose(total, exact, rtol=1e-12)


# --- bad input --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16], ids=lambda dtype: np.dtype(dtype).name)
def test_what_is_not_finite_is_named(formats: dict[str, Format], bad: float, axis: int, dtype: Any) -> None:
    matrix = np.ones((64, 64), dtype)
    matrix[33, 7] = matrix[33, 9] = matrix[60, 1] = bad
    with pytest.raises(ValueError, match=rf"holds {bad} at row 33, column 7"):
        scaling.quantise(matrix, formats["mxfp4"], axis=axis)
    with pytest.raises(ValueError, match="row 33, column 7"):
        scaling.tensor_scale(matrix, formats["nvfp4"])


def test_the_first_of_a_batch_is_named(formats: dict[str, Format]) -> None:
    batch = np.ones((2, 3, 4, 32), np.float32)
    batch[1, 2, 3, 30] = np.nan
    with pytest.raises(ValueError, match="row 3, column 30 of matrix 1, 2"):
        scaling.quantise(batch, formats["mxfp4"])
    with pytest.raises(ValueError, match="element 30"):
        scaling.quantise(batch[1, 2, 3], formats["mxfp4"])


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (np.ones((2, 40), np.float32), {}, r"shape \(2, 40\): the last size must be a multiple of 32, not 40; pad=True pads to 64"),
        (
            np.ones((40, 2), np.float32),
            {"axis": 0},
            r"shape \(40, 2\): the last two sizes must be multiples of 32 and 1, not 40 and 2; pad=True pads to 64 and 2",
        ),
        (np.ones((2, 32), np.int32), {}, "dtype int32; it must be float16, bfloat16, float32, float64"),
        (np.ones((2, 32), ml_dtypes.float8_e4m3fn), {}, "dtype float8_e4m3fn"),
        (np.ones((0, 32), np.float32), {}, r"the matrix: an array of shape \(0, 32\) has no elements"),
        (np.ones((2, 0), np.float32), {"pad": True}, r"the matrix: an array of shape \(2, 0\) has no elements"),
        (np.ones((2, 32), np.float32), {"axis": 2}, "axis = 2 is out of range"),
        (np.ones((), np.float32), {}, "axis = -1 is out of range"),
        (np.ones((2, 32), np.float32), {"tensor_scale": "a"}, "tensor_scale = 'a'; it must be a positive number that float32 holds"),
        (np.ones((2, 32), np.float32), {"tensor_scale": [1.0, 2.0]}, r"tensor_scale = \[1.0, 2.0\]; it must be"),
        (np.ones((2, 32), np.float32), {"tensor_scale": 10**400}, "tensor_scale = 10{400}; it must be"),
        ([[1.0] * 32], {}, "must be a NumPy array, a torch tensor or an array with __dlpack__, not list"),
        (np.ones((2, 32), np.float32), {"tensor_scale": 0.0}, "tensor_scale = 0.0; it must be a positive number"),
        (np.ones((2, 32), np.float32), {"tensor_scale": math.nan}, "tensor_scale = nan"),
        (np.ones((2, 32), np.float32), {"tensor_scale": 1e60}, "tensor_scale = 1e\\+60"),
        (np.ones((2, 32), np.float32), {"tensor_scale": 1e-39}, "tensor_scale = .* is too small"),
    ],
)
def test_matrices_that_cannot_be_quantised(formats: dict[str, Format], matrix: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scaling.quantise(matrix, formats["mxfp4"], **options)


def test_what_cannot_be_dequantised(formats: dict[str, Format]) -> None:
    form, other = formats["mxfp4"], formats["nvfp4"]
    elements, scales = scaling.quantise(np.ones((2, 64), np.float32), form)
    with pytest.raises(ValueError, match=r"shape \(2, 64\) and scales of shape \(2, 1\) do not fit: along axis -1 each 32"):
        scaling.dequantise(elements, scales[:, :1], form)
    with pytest.raises(ValueError, match="do not fit"):
        scaling.dequantise(elements[:, :40], scales, form)
    with pytest.raises(ValueError, match="scales has dtype float8_e8m0fnu; ue4m3 takes float8_e4m3fn"):
        scaling.dequantise(elements, scales, other)
    with pytest.raises(ValueError, match="e2m1 has 4 bits"):
        scaling.dequantise(np.full((2, 64), 16, np.uint8), scales, form)
    with pytest.raises(ValueError, match=r"ue4m3 has no sign, so its codes are 0\.\.0x7f"):
        scaling.dequantise(np.zeros((1, 16), np.uint8), np.full((1, 1), 0x80, np.uint8), other)
    with pytest.raises(ValueError, match="tensor_scale = -1"):
        scaling.dequantise(elements, scales, form, tensor_scale=-1)


def test_a_name_means_the_format_of_the_database(catalog: Catalog) -> None:
    spec = catalog.database.spec
    own = msgspec.structs.replace(next(entry for entry in spec.block_formats if entry.name == "mxfp4"), name="mine", block=8)
    database = msgspec.structs.replace(catalog.database, spec=msgspec.structs.replace(spec, block_formats=(own,)))
    matrix = _random((2, 16), 10)
    elements, scales = scaling.quantise(matrix, "mine", database=database)
    assert scales.shape == (2, 2)
    expected = scaling.dequantise(elements, scales, scaling.custom("e2m1", "ue8m0", 8))
    np.testing.assert_array_equal(scaling.dequantise(elements, scales, "mine", database=database), expected)
    with pytest.raises(ValueError, match="for each 8 along axis -1> takes no tensor scale"):
        scaling.tensor_scale(matrix, "mine", database=database)
    with pytest.raises(ValueError, match="unknown format 'mxfp4'; known: mine"):
        scaling.quantise(matrix, "mxfp4", database=database)


def test_formats_that_do_not_exist(catalog: Catalog) -> None:
    database = catalog.database
    assert scaling.custom("e2m1", "ue8m0", 16, database=database).block == 16
    with pytest.raises(ValueError, match="unknown element type 'f16'; known: e4m3, e5m2"):
        scaling.custom("f16", "ue8m0", 32, database=database)
    with pytest.raises(ValueError, match="unknown scale type 'e4m3'; known: ue8m0, ue4m3, ue5m3"):
        scaling.custom("e2m1", "e4m3", 32, database=database)
    for wrong in (["mxfp4"], None, "mxfp5"):
        with pytest.raises(ValueError, match=re.escape(f"unknown format {wrong!r}; known: mxfp8_e4m3, ")):
            scaling.quantise(np.ones((1, 32), np.float32), wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"unknown element type \['e2m1'\]; known: e4m3"):
        scaling.custom(["e2m1"], "ue8m0", 32)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="block = 0"):
        scaling.custom("e2m1", "ue8m0", 0, database=database)
    plain = catalog.find("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    with pytest.raises(ValueError, match=r"m16n8k16.* has no scale factors for 'a'"):
        scaling.of(plain)


# --- cuBLAS's order -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("scale", ["ue8m0", "ue4m3"])
def test_padding_in_the_order_of_cublas_is_zeros_of_every_type(scale: str, axis: int) -> None:
    """Zeros are bits: as a number, 0 is a NaN of ue8m0, and a NaN in the padding makes all of D NaN."""
    codes = np.full((200, 9) if axis == -1 else (9, 200), 0x38, np.uint8)
    packed = scaling.to_cublas(types.typed(codes, element := scaling.custom("e2m1", scale, 16).scale), axis)
    assert packed.dtype == types.dtype(element)
    assert np.count_nonzero(packed.view(np.uint8)) == codes.size
    assert set(packed.view(np.uint8).tolist()) == {0, 0x38}


def test_scales_in_the_order_of_cublas() -> None:
    """The place of each factor is that of cuBLAS's documentation; tiles follow each other along K."""
    random = np.random.default_rng(0)
    scales = random.integers(0, 255, (2, 200, 9)).astype(np.uint8)
    packed = scaling.to_cublas(scales)
    assert packed.shape == (2, 2 * 3 * 512)
    batch, row, block = np.indices(scales.shape)
    inside = row % 32 * 16 + row % 128 // 32 * 4 + block % 4
    np.testing.assert_array_equal(packed[batch, (row // 128 * 3 + block // 4) * 512 + inside], scales)
    assert packed.astype(int).sum() == scales.astype(int).sum()  # the rest is zeros
    np.testing.assert_array_equal(scaling.from_cublas(packed, (200, 9)), scales)
    np.testing.assert_array_equal(scaling.from_cublas(packed, scales.shape), scales)
    turned = scales.swapaxes(-1, -2)
    np.testing.assert_array_equal(scaling.to_cublas(turned, axis=-2), packed)
    np.testing.assert_array_equal(scaling.from_cublas(packed, (9, 200), axis=-2), turned)
    quantised = scaling.quantise(np.ones((130, 64), np.float32), "mxfp8_e4m3")
    assert scaling.to_cublas(quantised.scales).dtype == quantised.scales.dtype


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: scaling.to_cublas(np.ones((4, 4), np.float32)), r"scales has dtype float32 and shape \(4, 4\); it has 2 dimensions"),
        (lambda: scaling.to_cublas(np.ones(4, np.uint8)), "it has 2 dimensions or more, of a type of 8 bits"),
        (lambda: scaling.to_cublas(np.ones((4, 4), np.uint8), axis=0), "axis = 0 is not legal: -1 for"),
        (lambda: scaling.from_cublas(np.ones(512, np.uint8), (129, 4)), r"packed has shape \(512,\); .* \(129, 4\) take 1024 bytes"),
        (lambda: scaling.from_cublas(np.ones((2, 512), np.uint8), (3, 4, 4)), r"shape \(3, 4, 4\) is not that of scale factors"),
        (lambda: scaling.from_cublas(np.ones(512, np.uint8), (4,)), r"shape \(4,\) is not that of scale factors"),
    ],
)
def test_what_cublas_cannot_have_is_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
