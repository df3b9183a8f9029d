// Answers, for each tensor map and copy of its input, with "refuses: " and why, with "unknown" for what is not simulated, or the address of each unit of a
// load and the coordinates of its first element.  A line has, between bars: mode, code of the type, padding, bytes and atom of the swizzle,
// fill, interleave, address, destination | shape | strides | box | element strides | lower | upper | coordinates | offsets.
// The definitions of the simulator follow; what they need of its engine is above them.
#![allow(dead_code)]
use std::{fmt, sync::Arc};

struct EngineError(String);
impl EngineError {
    fn message(text: impl Into<String>) -> Self { EngineError(format!("refuses: {}", text.into())) }
    fn analysis_incomplete(_: &str) -> Self { EngineError("unknown".into()) }
}
struct BufferView { address: u64 }
impl BufferView {
    fn observed_allocation_address(&self) -> Option<u64> { Some(self.address) }
    fn byte_offset(&self) -> usize { 0 }
    fn byte_len(&self) -> usize { usize::MAX }
}
struct TensorMapTransferTemplate;
impl TensorMapTransferTemplate {
    fn compile(
        _: &[usize], _: &[usize], _: &[usize], _: usize, _: Option<Fp4SharedLayout>, _: Option<usize>, _: SwizzleAtomicity,
    ) -> Result<Self, EngineError> { Ok(Self) }
}

fn sizes(part: &[i64]) -> Vec<usize> { part.iter().map(|&value| value as usize).collect() }
fn corner(part: &[i64]) -> [i16; 3] { std::array::from_fn(|axis| part.get(axis).map_or(0, |&value| value as i16)) }

fn asked(parts: &[Vec<i64>]) -> Result<String, EngineError> {
    let [mode, code, padding, span, atom, fill, unit, address, destination] = parts[0][..] else { panic!("nine numbers") };
    let (at, offsets) = (&parts[7], &parts[8]);
    let map = RuntimeTensorMap::new_with_layout(
        BufferView { address: address as u64 }, sizes(&parts[1]), sizes(&parts[2]), sizes(&parts[3]), sizes(&parts[4]),
        TensorMapElementType::from_image_code(code as u8)?.bits(), TensorMapElementType::from_image_code(code as u8)?,
        [None, Some(Fp4SharedLayout::Align8Packed), Some(Fp4SharedLayout::Align16Padded)][padding as usize],
        (span > 0).then_some(span as usize),
        [SwizzleAtomicity::B16, SwizzleAtomicity::B32, SwizzleAtomicity::B32Flip8, SwizzleAtomicity::B64][atom as usize],
        [TensorMapFillMode::Zero, TensorMapFillMode::OobNan][fill as usize], (unit > 0).then_some(unit as usize),
        (1..4).contains(&mode).then(|| TensorMapIm2col { lower: corner(&parts[5]), upper: corner(&parts[6]), wide: mode > 1 }),
    )?;
    if mode == 4 && (map.rank() != 2 || map.box_shape[1] != 1 || unit > 0) {
        return Err(EngineError::message("four rows"));
    }
    map.validate_swizzle_direction(true)?;
    let geometry = tensor_map_geometry(&map)?;
    let rows: Vec<Vec<i64>> = match mode {
        0 => (0..geometry.outer_count)
            .map(|row| tensor_map_global_coordinates(&map, at, 0, &tensor_map_outer_coordinates(&map, row)))
            .collect::<Result<_, _>>()?,
        4 => at[1..].iter().map(|&row| vec![at[0], row]).collect(),
        _ => map.im2col_origins(at, [Im2colMode::Spatial, Im2colMode::Wide, Im2colMode::Wide128][mode as usize - 1], offsets)?,
    };
    let mut places = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        map.validate_u6_origin(row)?;
        for inner in 0..geometry.inner_units {
            let start = inner * geometry.unit_stride_bytes;
            let place = tensor_map_shared_byte_offset(&map, number, start, geometry.inner_row_bytes, destination as usize)?;
            let along = inner * geometry.packed_elements * map.element_strides[0];
            places.push(format!("{} {}", place + destination as usize, row[0] + along as i64));
        }
        places.push(format!("{:?}", &row[1..]));
    }
    Ok(places.join(";"))
}

fn main() {
    for line in std::io::stdin().lines() {
        let numbers = |part: &str| part.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let parts: Vec<Vec<i64>> = line.unwrap().split('|').map(numbers).collect();
        println!("{}", asked(&parts).unwrap_or_else(|error| error.0));
    }
}
