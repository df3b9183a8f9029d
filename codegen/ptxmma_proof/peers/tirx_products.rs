// Answers, for each line "KIND CTAS ws|- 100|103|107 WORD" of its input, with M, N and K of the product that an instruction descriptor says, or
// with an empty line if the simulator refuses it.  The definitions of the simulator follow; what they need of its engine is above them.
#![allow(dead_code)]

use RawTcgenMatrixDescriptorLayout::*;
struct EngineError;
impl EngineError {
    fn message(_: impl Into<String>) -> Self { EngineError }
    fn analysis_incomplete(_: &str) -> Self { EngineError }
}
type RawTcgenScaleDecoder = fn(u8) -> Result<f32, EngineError>;
fn raw_tcgen05_decode_ue8m0_scale(_: u8) -> Result<f32, EngineError> { Err(EngineError) }
fn raw_tcgen05_decode_ue4m3_scale(_: u8) -> Result<f32, EngineError> { Err(EngineError) }
fn raw_tcgen05_decode_ue5m3_scale(_: u8) -> Result<f32, EngineError> { Err(EngineError) }

type Layout = RawTcgenMatrixDescriptorLayout;

/// M, N and K of a product, if the simulator takes its descriptor.
fn asked(kind: &str, ctas: usize, ws: bool, layout: Layout, word: u32) -> Result<(usize, usize, usize), EngineError> {
    let (a, b, sparse) = ((word >> 7) & 7, (word >> 10) & 7, word & 4 != 0);
    let deep = if sparse { 2 } else { 1 };
    let mxf4 = |scale| {
        decode_raw_tcgen_mxf4_instruction_descriptor_for_cta_group(word, scale, ctas, layout, false).map(|d| (d.m, d.n, d.k))
    };
    match kind {
        "f16" => decode_raw_tcgen_b16_instruction_descriptor(word, a == 1, b == 1, ctas as u32, ws, sparse)
            .map(|d| (d.m, d.n, 16 * deep)),
        "tf32" => decode_raw_tcgen_tf32_instruction_descriptor(word, ctas, ws, sparse).map(|d| (d.m, d.n, 8 * deep)),
        "f8f6f4" => {
            let formats = (RawTcgenNarrowFormat::decode(a, "A")?, RawTcgenNarrowFormat::decode(b, "B")?);
            decode_raw_tcgen_f8f6f4_instruction_descriptor(
                word, formats.0, formats.1, word & 16 == 0, ctas as u32, layout == Sm107, ws, sparse).map(|d| (d.m, d.n, d.k * deep))
        }
        "i8" => raw_tcgen05_integer_shape(RawTcgenIntegerKind::I8, word, ctas, ws, sparse).map(|d| (d.0, d.1, 32 * deep)),
        "ti16" => raw_tcgen05_integer_shape(RawTcgenIntegerKind::Ti16, word, ctas, ws, sparse).map(|d| (d.0, d.1, 16 * deep)),
        "mxf8f6f4" => decode_raw_tcgen_mxf8f6f4_instruction_descriptor(word, ctas, layout).map(|d| (d.m, d.n, d.k)),
        _ if sparse => decode_raw_tcgen_sparse_mxf4_instruction_descriptor(word).map(|d| (d.m, d.n, d.k)),
        "mxf4" => mxf4(RawTcgenMxf4ScaleSpelling::Ue8m0Vec2x),
        "mxf4nvf4.block32" => mxf4(raw_tcgen05_mxf4nvf4_vec2x_scale(word)),
        _ => mxf4(raw_tcgen05_mxf4nvf4_vec4x_scale(word)),
    }
}

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let part: Vec<&str> = line.split(' ').collect();
        let layout = match part[3] { "107" => Sm107, "103" => Sm103, _ => Sm100 };
        match asked(part[0], part[1].parse().unwrap(), part[2] == "ws", layout, part[4].parse().unwrap()) {
            Ok((m, n, k)) => println!("{m} {n} {k}"),
            Err(_) => println!(),
        }
    }
}
