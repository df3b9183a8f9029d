/** The database of PTX matrix instructions. */

/** A permutation of bits: for each bit of an input, which bit of which output it becomes, least significant first. */
export interface BitMap {
  inputs: Record<string, number>;
  outputs: Record<string, number>;
  bits: Record<string, [string, number][]>;
}

/** The places of an operand's elements: a map between (lane, i) and the axes, in the way of its formula. */
export interface Layout {
  name: string;
  kind: string;
  operands: string[];
  axes: Record<string, number>;
  /** The axes that name a place, in order. */
  coordinates: string[];
  /** Axes that tell copies or independent products apart. */
  apart: string[];
  /** Axes whose size depends on N. */
  growing: string[];
  /** The axis along which a product adds up: "col" of A, "row" of B; "" of others. */
  summed: string;
  /** Inputs and outputs whose numbers are multiples of more than 1. */
  steps: Record<string, number>;
  /** The number of low bits of an input or output that are always 0. */
  zeros: Record<string, number>;
  threads: number;
  /** Width of an element's container. */
  bits: number;
  map: BitMap;
  /** True if the map leads from the axes to (lane, bit). */
  fromAxes: boolean;
  /** The map that leads to the axes. */
  toAxes: BitMap;
  /** The formula as people read it. */
  formula: { let: Record<string, string>; at: Record<string, string[]>; text: string };
  /** The target on which it was measured; empty where the manual states it. */
  observed: string;
  source: string;
}

/** The parameter of an operand in C++; `#` stands for the number of a register, or for their count. */
export interface CppOperand {
  name: string;
  parameter?: string;
  template?: string;
  value?: string;
  text?: string;
  prologue?: string;
  epilogue?: string;
}

export interface Operand {
  name: string;
  kind: string;
  title: string;
  /** The operand that it describes. */
  of: string;
  access: string;
  /** Type of its elements; empty without elements. */
  type: string;
  /** Bits of an element. */
  width: number;
  /** Bits of an element's container. */
  bits: number;
  /** Lowest bit of the element in its container. */
  shift: number;
  elements: number;
  registers: number;
  register: string;
  registerBits: number;
  cType: string;
  constraint: string;
  immediates: { first: number; last: number; step?: number; values: number[] } | null;
  meanings: Record<string, number>;
  default: number | null;
  immediateOnly: boolean;
  single: boolean;
  /** True if PTX has it in braces even where it is one register without elements. */
  braced: boolean;
  sparse: boolean;
  rowBytes: number;
  alignment: number;
  layout: Layout | null;
  sizes: Record<string, number>;
  cpp: CppOperand;
}

export interface OperandForm {
  name: string;
  syntax: string;
  operands: Operand[];
}

/** A pattern of structured sparsity, with the fields that an instruction admits. */
export interface SparsityPattern {
  name: string;
  chunk: number;
  kept: number;
  unit: number;
  index_bits: number;
  indices: number;
  text: string;
  legal: string[];
  /** The units of a chunk that a field keeps. */
  places: Record<string, number[]>;
  /** The units that are not zero, to the field that describes them. */
  fields: Record<string, string>;
  contributors: string;
}

export interface FormEntry {
  /** The values of each qualifier, with spaces between them; one that may be absent has an empty value. */
  qualifiers: Record<string, string>;
  /** Each with its last number, and the step. */
  ranges?: Record<string, [first: number, last: number, step: number][]>;
  unspelled?: string[];
  documented?: boolean;
  source: string;
}

/** A qualifier; the default is what leaving it out means where the condition holds: `atype=f64|f32 m=64; m=128`. */
export interface QualifierEntry {
  title: string;
  usual?: string;
  default?: { value: string; when?: string }[];
}

/** A modifier that may follow an instruction without changing its operands or its result, of one hint at most one; conditions are texts, as in defaults. */
export interface HintValue {
  name: string;
  value: string;
  of?: string;
  when?: string;
}

/** One PTX instruction with all its forms, as the database has it. */
export interface InstructionSet {
  name: string;
  family: string;
  title: string;
  /** The titles of its operands, by name; the explorer lacks them. */
  titles?: Record<string, string>;
  stem: string;
  scope: string;
  operation: string;
  memory?: boolean;
  opcode: string;
  syntax: string;
  ordered?: string[][];
  repeatable?: string[];
  extents?: Record<string, { pattern?: string; values?: Record<string, Record<string, number>> }>;
  qualifiers: Record<string, QualifierEntry>;
  hints: HintValue[];
  shape: string;
  /** The qualifier with the type of the first matrix, by which its pages are named. */
  typed: string;
  places: Record<string, string>;
  forms: FormEntry[];
  /** For each combination of qualifiers, numbers of what it shares with others: one for all, or as many as `short_texts.js` reads. */
  calls: string;
  accepted: string;
  headers: string;
  peers: string;
  aliases: string;
  patterns?: string;
}

/** An entry of an instruction as it is written, without what is usual: the opcode and the stem follow from its name. */
export type InstructionRecord = Omit<InstructionSet, "qualifiers" | "hints" | "forms" | "opcode" | "stem" | "shape" | "typed" | "places"> &
  Partial<Pick<InstructionSet, "opcode" | "stem" | "shape" | "typed" | "places">> & { qualifiers: string; hints?: string; forms: string[] };

/** Instructions that differ in nothing but an extent that ranges. */
export interface InstructionGroup {
  entry: InstructionSet;
  form: FormEntry;
  templates: Record<string, string>;
  /** The extent that ranges; empty where none does. */
  extent: string;
  /** Its numbers; [0] where none ranges. */
  numbers: number[];
  forms: number[][];
  accepted: Record<string, string>;
  header: string;
  peers: string[];
  /** Its names elsewhere: atoms of CuTe that lay nothing out, and the machine instruction that it became. */
  aliases: string[];
  pattern: SparsityPattern | null;
}

export interface Instruction {
  canonical: string;
  /** Its name in generated code. */
  identifier: string;
  name: string;
  family: string;
  title: string;
  scope: string;
  operation: string;
  qualifiers: Record<string, string>;
  extents: Record<string, number>;
  documented: boolean;
  source: string;
  /** The targets that accept it, each with the first PTX ISA version. */
  accepted: Record<string, string>;
  /** The CUDA header with its wrapper, below `ptxmma/`. */
  header: string;
  /** Definitions of other projects that lay its operands out in the same way. */
  peers: string[];
  pattern: SparsityPattern | null;
  /** The place where each matrix of a product is drawn: left of the result, on top of it, or in the middle. */
  places: Record<string, string>;
  /** The address of its page below the site's reference, without `.html`. */
  page: string;
  group: InstructionGroup;
  /** The number of the extent that ranges. */
  number: number;
  forms: OperandForm[];
}

/** The place of something in the threads' registers. */
export interface Place {
  lane: number;
  /** Of the thread, through all registers; of metadata the field, of scale factors the byte. */
  element: number;
  register: number;
  low: number;
  width: number;
}

/** The matrix of an operand in the registers of the threads. */
export interface Arrangement {
  name: string;
  operand: Operand;
  layout: Layout;
  /** The axes that are its rows and columns. */
  axes: [string, string];
  rows: number;
  cols: number;
  threads: number;
  elements: number;
  perRegister: number;
  counter: string;
  /** The values of what must be chosen, as instructions write them: a selector, one of several matrices. */
  legal: Record<string, number[]>;
  /** The place of an element; throws a RangeError outside the matrix. */
  locate(row: number, col: number, chosen?: Record<string, number>): Place;
  /** The content of a thread: its place, and what must be chosen so that it is read. */
  at(lane: number, element: number): Record<string, number>;
}

export interface MemoryFacts {
  alignment: number;
  banks: { count: number; bytes: number };
  tensor_map: { largest_box: number; alignment: number; padded_box: number };
  /** The formulas for the byte to which a swizzle moves another, and for the base offset of a pattern. */
  swizzle_formula: string;
  base_offset: string;
  /** The family of the instructions that read the matrices. */
  family: string;
  swizzles: { name: string; title: string; encoding: number; formula: string; bytes: number; pattern: number; cute: string; atom_mn: [number, number]; atom_k: [number, number]; tma: string }[];
  layouts: CanonicalLayout[];
  /** The element types that instructions read with a majorness and some swizzles; `padded`: those that they read with padding. */
  reads: ReadableTypes[];
  padded: (ReadableTypes & { group: number })[];
  /** By majorness and swizzle: the strides that are used, each with the operands that use it; none where all do. */
  strides: Record<string, Record<string, Record<string, string[]>>>;
  format: DescriptorFormat;
  descriptor: DescriptorFormat["fields"];
  /** Signs of mistakes in descriptors, and where the pattern of one starts: formulas, and texts with formulas in braces, over the numbers `names`. */
  suspicions: { rules: { rule: string; field?: string; severity: string; names: string; when: string; text: string }[]; starts: Record<string, string> };
}

/** A canonical layout: the lines of a group, and the strides that lead from panel to panel and from group to group. */
export interface CanonicalLayout {
  majorness: string;
  swizzles: string[];
  cute: string;
  lbo: string;
  sbo: string;
  /** The formula of the byte at which a place lies, from the start on; the contiguous dimension counts bytes. */
  offset: string;
  lines: number;
  panels: "lbo" | "sbo";
  groups: "lbo" | "sbo";
}

export interface ReadableTypes {
  majorness: string;
  swizzles: string[];
  elements: string[];
}

/** A probable mistake in a descriptor; the field is empty for bits that belong to none. */
export interface Suspicion {
  field: string;
  rule: string;
  text: string;
  /** "note": right in a usual case that the descriptor does not tell; else "warning". */
  severity: string;
}

export interface ImageOptions {
  /** Of the instructions that read it: by default the first with matrix descriptors. */
  family?: string;
  type: string;
  majorness: string;
  swizzle: string;
  /** Rows of A or columns of B. */
  x: number;
  /** Depth; of a sparse A the packed one. */
  k: number;
  lbo?: number;
  sbo?: number;
  start?: number;
  baseOffset?: number;
  /** Of elements of 4 and 6 bits that lie padded. */
  padded?: boolean;
}

/** Tensor memory: lanes, bits of a cell, columns where there are most, lanes that a warp reaches, the lowest bit of each part of an address. */
export interface TensorMemory {
  name: string;
  title: string;
  /** The instructions that reach it; those that no other memory names where this is missing. */
  of?: string;
  lanes: number;
  cell: number;
  columns: number;
  partition: number;
  address: Record<string, number>;
  layouts: TensorLayout[];
}

/** The place of an operand: formulas there and back; conditions are texts, as in defaults. */
export interface TensorLayout {
  name: string;
  title: string;
  operand: string;
  matrix?: string;
  of: string;
  unit?: string;
  axes: Record<string, string>;
  apart?: string[];
  selections?: { name: string; values: number[]; when?: string }[];
  at: Record<string, string>;
  back: Record<string, string>;
  /** Lanes at which it may start; 0 alone where there are none. */
  align?: number[];
  source: string;
}

/** A place in tensor memory, from the operand's address on. */
export interface TensorPlace {
  cta: number;
  lane: number;
  column: number;
  bit: number;
}

/** The place of an element after a load: the thread of a warp, its register, the lowest bit in it, and the address that the load has. */
export interface RegisterPlace {
  cta: number;
  warp: number;
  lane: number;
  register: number;
  bit: number;
  address: number;
}

/** The choices of an instruction descriptor, and their alternatives. */
export interface TensorProduct {
  values: Record<string, string | number>;
  legal: Record<string, (string | number)[]>;
  /** Kept elements along K that share a scale factor; 0 without scale factors. */
  block: number;
  /** The chunk of a sparse A and what it keeps, where a field of the instruction descriptor chooses them. */
  sparsity?: { chunk: number; kept: number };
  /** Lists of targets of which it needs one each, or one that includes it. */
  targets: string[][];
}

/** A format of a descriptor; a case lists what a field holds for each legal value, any number where it lists none. */
export interface DescriptorFormat {
  name: string;
  title: string;
  family: string;
  qualifier?: string;
  kinds?: string[];
  bits: number;
  spare: "ignored" | "zero";
  fields: {
    name: string;
    title: string;
    low: number;
    width: number;
    upper?: number;
    shift?: number;
    less?: number;
    unit?: string;
    fixed?: number;
    /** The number that the field holds where nobody gives a value. */
    default?: number;
    cases?: { when?: string; values?: Record<string, number>; below?: number; targets?: string[] }[];
  }[];
}

/** A field of a descriptor, read. */
export interface FieldValue {
  field: DescriptorFormat["fields"][number];
  stored: number;
  value: number | string;
  legal: boolean;
}

/** The fields of a descriptor by name: bytes, and the name of the swizzle mode. */
export type DescriptorFields = Record<string, number | string>;

export interface TensorMapBox {
  swizzle: string;
  inner: number;
  outer: number;
  boxes: number;
  /** That all boxes count on an mbarrier. */
  transactionBytes: number;
}

/** One way to access a whole image. */
export interface AccessPattern {
  name: string;
  width: number;
  /** Lanes that take part in the access that costs most. */
  lanes: number;
  /** Accesses of a warp for the whole image. */
  count: number;
  wavefronts: number;
  /** Wavefronts that as many bytes can cost. */
  least: number;
  accesses: (number | null)[][];
  costs: number[];
}

export interface CompressedRow {
  values: number[];
  fields: string[];
  /** Chunks with more units that are not zero than the pattern keeps. */
  crowded: number[];
}

/** The tables that `instructions` and `layout` read. */
/** One side of a conversion: as many tiles as the other side needs, one after another. */
export interface ConversionSide {
  operand: Operand;
  /** Elements within a register, as a number of bits. */
  inside: number;
  /** Bits of `i` within one tile. */
  elements: number;
  /** The axis along which each bit of a place moves, and by how much: `lane0` to `["col", 2]`. */
  places: Map<string, [axis: string, by: number] | null>;
  axes: string[];
  /** The axis whose order may change, so long as what reads the operand follows; empty for none. */
  ordered: string;
  /** True if a product adds up along that axis: it is K. */
  summed: boolean;
}

/** A fragment as another operand takes it. */
export interface Conversion {
  /** The cost: a key of the database's `conversions`. */
  kind: string;
  source: ConversionSide;
  target: ConversionSide;
  /** For each bit of a target place the bit of the source place: `lane0` to `i1`. */
  origin: Map<string, string>;
  /** The number in the source for each number along the axis whose order changed; empty where it did not. */
  order: number[];
  /** The same conversion in an order of K, or of the columns, that makes it cheaper. */
  reordered: Conversion | null;
}

/** Records by column: a text of numbers, or a list; in a list, what is absent is empty. */
export type Columns<Row> = { [Name in keyof Row]-?: string | (Row[Name] | null)[] };

/** A layout as it is written: its formula, its map and its axes by their numbers. */
export interface LayoutRecord {
  formula: number;
  map: number;
  axes: number;
  bits: number;
  threads: number;
  summed?: string;
  growing?: string[];
  steps?: Record<string, number>;
}

/** An operand as it is written: its role, its register, its layout and its type by their numbers. */
export interface OperandRecord {
  role: number;
  /** A number; one for each number of an extent that ranges; or a formula. */
  registers: number | string | number[];
  register: number;
  /** -1 without one. */
  layout: number;
  elements: number;
  type: number;
  bits: number;
  shift: number;
  row_bytes: number;
  alignment: number;
  default?: number;
}

export interface Found {
  /** One instruction; several where no preference decides; none where the text means none. */
  instructions: Instruction[];
  /** Others that the text may mean. */
  others: Instruction[];
  /** The preferences that decided against them: `dense before sparse`. */
  reasons: string[];
  /** The target that words name, which accepts them: `sm_120a`; else empty. */
  target: string;
}

/** A tile in shared memory, or the box of a tensor map. */
export interface Tile {
  type: string;
  /** The family that reads it, which has a descriptor of its own: `tcgen05`; empty where the text names none. */
  family: string;
  majorness: "K" | "MN";
  /** `128B`; `none` where the text names none. */
  swizzle: string;
  rows: number;
  cols: number;
  /** The bytes that an mbarrier expects for it. */
  bytes: number;
}

/** A name, not of an instruction, with a sentence; a message of ptxas has its cause and the remedy. */
export interface Explained {
  name: string;
  text: string;
  cause?: string;
  remedy?: string;
}

/** The parts of a question. */
export interface Asked {
  /** The words that name instructions, for `resolve`. */
  words: string;
  /** `a`, `scale-a`, `metadata`; empty where the text names no operand. */
  operand: string;
  /** Row and column of an element of the operand. */
  element: [number, number] | null;
  lane: number | null;
  tile: Tile | null;
  explanations: Explained[];
}

/** The parts of a question in plain words: `SFA[3][0] of m16n8k64 nvfp4`, `C7510`, `tma box 64x64 bf16`. */
export function ask(text: string): Asked;
/** The operand that a name means: `scale-a` for `SFA`. */
export function partNamed(name: string): string;

export interface DatabaseTables {
  version: string;
  document: string;
  /** The beginnings of sections' numbers in other releases of the document, for each release; the last that a number has counts. */
  sections?: Record<string, Record<string, string>>;
  scopes: Record<string, number>;
  colours: string[];
  /** The kinds of conversions in words, the cheapest first. */
  conversions: Record<string, string>;
  /** With the first version that knows each. */
  targets: Record<string, string>;
  gpus: { target: string; architecture: string; names: string[] }[];
  /** Names with blanks between, then their meanings in words of PTX, the preferred first. */
  words: [names: string, ...means: string[]][];
  parts: [means: string, ...names: string[]][];
  /** The instruction that is preferred of several: the one with the first of these values of a fact, or with the smallest, among those with equal values of others. */
  topics?: Columns<{ names: string[]; text: string }>;
  messages: Columns<{ code: string; text: string }>;
  remedies?: { cause: string; remedy: string }[];
  preferences: Columns<{ fact: string; text: string; first?: string[]; among?: string[] }>;
  types: Record<string, { title: string; bits: number; form: string }>;
  registers: Record<string, { bits: number; c_type: string }>;
  formulas: Columns<{
    operands: string[];
    kind?: string;
    let?: Record<string, string>;
    at: Record<string, string[]>;
    apart?: string[];
    text?: string;
    observed?: string;
    source: string;
  }>;
  /** By column; the names as `continuedWords` reads them. */
  layouts: { names: string } & Columns<LayoutRecord>;
  maps: Record<string, string>[];
  axes: Record<string, number>[];
  /** The types of elements in operands, by the numbers of `type`: `f16`, `{atype}` for the value of that qualifier. */
  operand_types: string[];
  /** The purposes of operands. */
  subjects: Columns<{
    name: string;
    kind: string;
    of?: string;
    meanings?: Record<string, number>;
    single?: boolean;
    braced?: boolean;
    sparse?: boolean;
    unit?: string;
    /** Its name in C++, where it is not its name. */
    identifier?: string;
  }>;
  /** The form of operands in PTX and C++. */
  roles: Columns<{
    subject: number;
    access?: string;
    constraint?: string;
    immediates?: number[] | { first: number; last: number; step?: number };
    immediate_only?: boolean;
    cpp: number;
  }>;
  /** The parameters of operands in C++, with `@` for an identifier. */
  parameters: Record<string, string>[];
  operands: Columns<OperandRecord>;
  /** Lists of operands, with `#` for each of them. */
  lists: { name?: string; syntax?: string }[];
  /** For each list of operands, with semicolons between: its number, and its operands' numbers. */
  calls: string[];
  accepted: [since: string, targets: string, others?: Record<string, string>][];
  headers: string[];
  peers: string[][];
  aliases: string[][];
  granularities: Omit<SparsityPattern, "places" | "legal" | "contributors">[];
  places: Record<string, number[]>[];
  patterns: [granularity: number, places: number, contributors: string][];
  tensor?: (Omit<TensorMemory, "layouts"> & { layouts: Columns<TensorLayout> })[];
  /** The choices of instruction descriptors: a product is legal if some row of each list has its values. */
  products?: {
    types: { of: string; dtype: string[]; atype: string[]; btype: string[] }[];
    depths: { of: string; k: number; targets?: string[] }[];
    shapes: { of: string; m: number[]; n: [first: number, last: number, step: number][] }[];
    /** Fields on which the meaning or the place of an operand depends; of several values the first is usual. */
    options?: { of: string; field: string; value: string | number; targets?: string[]; sparsity?: { chunk: number; kept: number } }[];
    /** The M, the N, or the values of other fields, that qualifiers and fields of the instruction descriptor leave. */
    limits?: { of: string; m?: number[]; n?: [first: number, last: number, step: number][]; fields?: Record<string, (string | number)[]> }[];
    scales?: { of: string; stype: string[]; block: number; targets?: string[] }[];
  };
  /** The containers of narrow elements. */
  containers?: { elements: string[]; bits: number; shift?: number; when?: string }[];
  qualifiers: Columns<QualifierEntry & { name: string }>;
  /** The names of qualifiers that forms have, with spaces between. */
  names: string[];
  /** The values of a qualifier, with spaces between. */
  values: string[];
  /** The remarks of forms about themselves. */
  remarks: Columns<Omit<FormEntry, "qualifiers">>;
  /** Of a form: the numbers of its remark, of its names, and of the values of each. */
  hints: Columns<HintValue>;
  /** By column. */
  instructions: Columns<InstructionRecord>;
  descriptors?: (Omit<DescriptorFormat, "fields"> & { fields: string })[];
  fields?: Columns<Omit<DescriptorFormat["fields"][number], "cases"> & { cases?: string }>;
  cases?: Columns<NonNullable<DescriptorFormat["fields"][number]["cases"]>[number]>;
  /** The facts that all families share, and for each family the ones that it reads: the descriptor is the name of its format. */
  memory?: Pick<MemoryFacts, "alignment" | "banks" | "tensor_map" | "layouts" | "swizzle_formula" | "base_offset" | "suspicions"> & {
    swizzles: (Omit<MemoryFacts["swizzles"][number], "encoding" | "formula"> & { formula?: string })[];
    families: (Pick<MemoryFacts, "family" | "reads" | "padded" | "strides"> & { descriptor: string; encodings: Record<string, number> })[];
  };
}

export const database: DatabaseTables;
export const layoutNames: string[];
/** A layout by its name. */
export function layout(name: string): Layout;
export function instructionGroups(): InstructionGroup[];
export function instructionOf(group: InstructionGroup, number: number): Instruction;
/** Every instruction, in the order of the database. */
export function instructions(): Instruction[];
/** The instruction that a spelling means; undefined where it means none. */
export function instruction(spelling: string): Instruction | undefined;
/**
 * The instructions that a text means: a spelling, words such as `m16n8k8 tf32` or `wgmma n128 bf16`, a line of PTX, a function of the headers, or an atom of CuTe.
 * Of instructions that differ in a number alone there is one: with the number of the text, if it has one.
 */
export function resolve(text: string): Found;
/** The matrices of an instruction that are spread over threads, by the names that users give them. */
export function arrangements(instruction: Instruction): Map<string, Arrangement>;
export function bitsOf(place: { low: number; width: number }): string;
/** The way that brings the elements of one operand's registers to the registers of another; undefined where one has none. */
export function conversionOf(source: Operand, target: Operand, transpose?: boolean): Conversion | undefined;
/** The element at a place: its number on each axis. */
export function elementAt(side: ConversionSide, place: Record<string, number>): Record<string, number>;
/** The bits of a part of a place: `i`, `lane`, `warp`. */
export function widthOf(side: ConversionSide, name: string): number;
export function toCute(operand: Operand): string | undefined;
export function toTriton(operand: Operand): { register: number[][]; lane: number[][]; warp: number[][] } | undefined;
export const memoryFacts: MemoryFacts | undefined;
/** The facts about the matrices that a family reads from shared memory; by default the first family with matrix descriptors. */
export function sharedMemoryOf(family?: string): MemoryFacts | undefined;
export function readableTypes(majorness: string, swizzle?: string, family?: string, padded?: boolean): string[];
/** The place of a whole matrix in shared memory.  Throws a RangeError for what no descriptor describes. */
export class MemoryImage {
  constructor(options: ImageOptions);
  readonly bits: number;
  /** Bits between neighbouring elements, on the average: more than an element's where they lie padded. */
  readonly width: number;
  readonly lines: number;
  readonly panel: number;
  readonly perUnit: number;
  readonly lbo: number;
  readonly sbo: number;
  readonly size: number;
  offset(x: number, k: number): number;
  address(x: number, k: number): number;
  units(): number[][];
  descriptor(x?: number, k?: number): DescriptorFields;
  steps(depth: number): DescriptorFields[];
  readonly tma: TensorMapBox;
}
export function encodedDescriptor(fields: DescriptorFields, facts?: MemoryFacts): bigint;
export function decodedDescriptor(bits: bigint, facts?: MemoryFacts): DescriptorFields;
/** The probable mistakes in the bits of a descriptor, of a matrix whose element type and family may be given. */
export function suspicions(bits: bigint, majorness?: string, matrix?: { element?: string; family?: string }): Suspicion[];
export const descriptorFormats: DescriptorFormat[];
export function explainedDescriptor(format: DescriptorFormat, kind: string, bits: bigint): FieldValue[];
export function bankWords(access: (number | null)[], width: number): Map<number, Set<number>>[];
export function wavefronts(access: (number | null)[], width: number): number;
export function accessPatterns(image: MemoryImage): AccessPattern[];
export function prunedRow(row: number[], pattern: SparsityPattern): number[];
export function compressedRow(row: number[], pattern: SparsityPattern): CompressedRow;
export function keptColumns(field: string, pattern: SparsityPattern): number[] | undefined;
export function fieldBits(pattern: SparsityPattern): number;
export function ptxText(instruction: Instruction, form: OperandForm): string;
export function inlineAssembly(instruction: Instruction, form: OperandForm): string;
export function wrapperCall(instruction: Instruction, form: OperandForm): string;
export function cFunctions(layout: Layout): string;
export function pythonFunctions(layout: Layout): string;
export function shortName(place: Place, table: Arrangement): string;
export function csvText(table: Arrangement, chosen?: Record<string, number>): string;
export const tensorMemories: TensorMemory[];
/** The product of an opcode with the given values where they are legal, the usual ones elsewhere; null where the opcode says all itself. */
export function tensorProduct(instruction: Instruction, given?: Record<string, string | number>): TensorProduct | null;
/** The layout of an operand in tensor memory. */
export class TensorPlaces {
  readonly name: string;
  readonly operand: Operand;
  readonly memory: TensorMemory;
  readonly layout: TensorLayout;
  readonly sizes: Record<string, number>;
  readonly coordinates: string[];
  readonly apart: string[];
  readonly selections: Record<string, number[]>;
  readonly unit: number;
  readonly width: number;
  readonly shift: number;
  readonly ctas: number;
  readonly columns: number;
  /** The place of something; throws a RangeError outside an axis. */
  locate(point: Record<string, number>): TensorPlace;
  /** The content of a place; null where nothing lies there. */
  at(place: TensorPlace, selected?: Record<string, number>): Record<string, number> | null;
}
/** The operands of an instruction in tensor memory; null for one that no source describes. */
export function tensorOperands(instruction: Instruction, product: TensorProduct | null): Map<string, TensorPlaces | null>;
/** The loads whose registers take the whole elements of an operand. */
export function loadsOf(places: TensorPlaces): Instruction[];
export function fragmentOf(load: Instruction): Arrangement | undefined;
/** The register of a load that takes what lies at a place of the operand whose address is the base. */
export function registerOf(table: Arrangement, places: TensorPlaces, place: TensorPlace, base: { lane: number; column: number }): RegisterPlace;
export function cTensorFunctions(places: TensorPlaces): string;
export function pythonTensorFunctions(places: TensorPlaces): string;
export function tensorCsv(places: TensorPlaces, selected: Record<string, number>, base: { lane: number; column: number }, load?: Arrangement): string;
