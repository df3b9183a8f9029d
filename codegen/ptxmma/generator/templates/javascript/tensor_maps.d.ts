/** The arguments of a tensor map; dimensions are innermost first. */
export interface TensorMapArguments {
  /** the driver's name, without CU_TENSOR_MAP_DATA_TYPE_: "BFLOAT16" */
  type: string;
  /** elements of the tensor */
  shape: number[];
  /** elements of the box */
  box?: number[];
  /** bytes between neighbours along each dimension but the innermost; by default dense */
  strides?: number[];
  /** steps of the box through the tensor; by default 1 */
  elementStrides?: number[];
  swizzle?: string;
  interleave?: string;
  fill?: string;
  /** address of the tensor */
  address?: number;
  /** "tiled", "im2col", "im2col::w", "im2col::w::128" or "gather4" */
  mode?: string;
  /** corners of the bounding box of im2col along W, H, D, of im2col::w along W */
  lower?: number[];
  upper?: number[];
  channels?: number;
  pixels?: number;
}

/** A rule that a tensor map breaks. */
export interface TensorMapFault {
  argument: string;
  /** the dimension or stride; absent where the rule is about the whole argument */
  index?: number;
  text: string;
}

export const dataTypes: Record<string, { value: number; bits: number; padded: boolean; float: boolean }>;
export const swizzles: Record<string, { value: number; span: number }>;
export const interleaves: Record<string, { value: number; unit: number }>;
export const fills: Record<string, number>;

/** The rules that a tensor map breaks; throws a RangeError for an unknown name or lists of another length. */
export function tensorMapFaults(given: TensorMapArguments): TensorMapFault[];
