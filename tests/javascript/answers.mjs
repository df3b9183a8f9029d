// Answers a list of questions about the generated package, as JSON: node answers.mjs PACKAGE < questions.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(`${process.argv[2]}/${name}`).href);
const { exports } = JSON.parse(readFileSync(`${process.argv[2]}/package.json`, "utf8"));
const { ".": ptxmma, "./layouts": layouts, ...others } = Object.fromEntries(await Promise.all(Object.entries(exports).map(async ([name, file]) => [name, await load(file.default)])));
const functions = Object.assign({}, layouts, ...Object.values(others));

const operandOf = (operand) => ({ ...operand, layout: operand.layout?.name ?? "", cpp: undefined });

const answers = {
  /** The results of a function at many points. */
  function: ({ name, points }) => points.map((point) => functions[name](...point)),
  functions: () => Object.keys(layouts),
  instructions: () =>
    ptxmma.instructions().map((found) => ({
      ...Object.fromEntries(["canonical", "identifier", "extents", "documented", "accepted", "header", "peers", "source", "page"].map((key) => [key, found[key]])),
      forms: found.forms.map((form) => ({ ...form, operands: form.operands.map((operand) => operand.name) })),
      legal: found.pattern?.legal ?? null,
    })),
  operands: ({ spelling }) => ptxmma.instruction(spelling).forms.flatMap((form) => form.operands.map(operandOf)),
  notations: ({ spelling }) =>
    ptxmma.instruction(spelling).forms.flatMap((form) => form.operands.map((operand) => [operand.name, ptxmma.toCute(operand) ?? null, ptxmma.toTriton(operand) ?? null])),
  /** Pairs of operands, each a spelling and a name. */
  conversions: ({ pairs }) =>
    pairs.map(([one, other, transpose]) => {
      const [source, target] = [one, other].map(([spelling, name]) => ptxmma.instruction(spelling).forms.flatMap((form) => form.operands).find((operand) => operand.name === name));
      const told = (found) => found && { kind: found.kind, origin: [...found.origin], order: found.order, reordered: told(found.reordered) ?? null };
      const made = ptxmma.conversionOf(source, target, transpose);
      return { ...told(made), places: [made.source, made.target].map((side) => [...side.places]) };
    }),
  meaning: ({ spellings }) => spellings.map((spelling) => ptxmma.instruction(spelling)?.canonical ?? null),
  /** The instructions that texts mean. */
  asked: ({ texts }) => texts.map(ptxmma.ask),
  resolve: ({ texts }) => texts.map((text) => ptxmma.resolve(text).instructions.map((found) => found.canonical)),
  /** Every place of every matrix of an instruction, for every choice of what must be chosen. */
  places: ({ spelling }) =>
    [...ptxmma.arrangements(ptxmma.instruction(spelling))].map(([name, table]) => {
      let choices = [{}];
      for (const [axis, values] of Object.entries(table.legal)) choices = choices.flatMap((choice) => values.map((value) => ({ ...choice, [axis]: value })));
      const rows = choices.map((chosen) =>
        Array.from({ length: table.rows }, (_, row) =>
          Array.from({ length: table.cols }, (_, col) => {
            const { lane, element, register, low, width } = table.locate(row, col, chosen);
            return [lane, element, register, low, width];
          }),
        ),
      );
      const back = Array.from({ length: table.threads }, (_, lane) => Array.from({ length: table.elements }, (_, element) => table.at(lane, element)));
      return { name, choices, rows, back };
    }),
  texts: ({ spelling }) => {
    const found = ptxmma.instruction(spelling);
    return found.forms.map((form) => ({ ptx: ptxmma.ptxText(found, form), assembly: ptxmma.inlineAssembly(found, form), call: ptxmma.wrapperCall(found, form) }));
  },
  indexFunctions: () => ptxmma.layoutNames.map((name) => [ptxmma.cFunctions(ptxmma.layout(name)), ptxmma.pythonFunctions(ptxmma.layout(name))]),
  suspicions: ({ bits, majorness, element, family }) =>
    ptxmma.suspicions(BigInt(bits), majorness ?? undefined, { element: element ?? undefined, family }).map(({ field, rule, text, severity }) => [field, rule, text, severity]),
  csv: ({ spelling, operand, chosen }) => ptxmma.csvText(ptxmma.arrangements(ptxmma.instruction(spelling)).get(operand), chosen),
  image: (options) => {
    try {
      const image = new ptxmma.MemoryImage(options);
      const units = image.units();
      const attempt = (make) => {
        try {
          return make();
        } catch (error) {
          return String(error.message);
        }
      };
      const patterns = ptxmma.accessPatterns(image).map((each) => [each.name, each.width, each.lanes, each.count, each.wavefronts, each.least]);
      const steps = attempt(() => image.steps(options.depth).map((fields) => `0x${ptxmma.encodedDescriptor(fields, image.facts).toString(16)}`));
      const descriptor = `0x${ptxmma.encodedDescriptor(image.descriptor(), image.facts).toString(16)}`;
      const line = [...Array.from({ length: image.k }, (_, k) => image.address(0, k)), ...Array.from({ length: image.x }, (_, x) => image.address(x, 0))];
      return { units, line, patterns, steps, descriptor, size: image.size, tma: attempt(() => image.tma) };
    } catch (error) {
      return { error: String(error.message) };
    }
  },
  /** Every product that an opcode may choose. */
  products: ({ spelling }) => {
    const instruction = ptxmma.instruction(spelling);
    const names = ["dtype", "atype", "btype", "k", "m", "n", "sparsity_version", "scale_a_lanes", "stype"];
    const visit = (given) => {
      const { legal, values } = ptxmma.tensorProduct(instruction, given);
      const open = names.find((name) => !(name in given) && legal[name]);
      return open ? legal[open].flatMap((value) => visit({ ...given, [open]: value })) : [values];
    };
    return visit({});
  },
  /** Every place of an operand in tensor memory, with its register where there is a load, and whether the way back leads to each. */
  tensor: ({ spelling, product, operand, selected, load, base }) => {
    const instruction = ptxmma.instruction(spelling);
    const places = ptxmma.tensorOperands(instruction, ptxmma.tensorProduct(instruction, product)).get(operand);
    if (!places) return null;
    let points = [{}];
    for (const [axis, size] of Object.entries(places.sizes)) points = points.flatMap((point) => Array.from({ length: size }, (_, value) => ({ ...point, [axis]: value })));
    const there = points.map((point) => places.locate({ ...point, ...selected }));
    const back = points.every((point, index) => JSON.stringify(places.at(there[index], selected)) === JSON.stringify(point));
    const table = load && ptxmma.fragmentOf(ptxmma.instruction(load));
    const registers = table ? there.map((place) => Object.values(ptxmma.registerOf(table, places, place, base))) : [];
    const { sizes, columns, unit, selections, layout } = places;
    return { layout: layout.name, sizes, columns, unit, selections, places: there.map(Object.values), back, registers, c: ptxmma.cTensorFunctions(places), python: ptxmma.pythonTensorFunctions(places) };
  },
  loads: ({ spelling, product, operand }) => {
    const instruction = ptxmma.instruction(spelling);
    return ptxmma.loadsOf(ptxmma.tensorOperands(instruction, ptxmma.tensorProduct(instruction, product)).get(operand)).map((load) => load.canonical);
  },
  decode: ({ bits, family }) => ptxmma.decodedDescriptor(BigInt(bits), ptxmma.sharedMemoryOf(family)),
  explain: ({ format, kind, bits }) =>
    ptxmma.explainedDescriptor(ptxmma.descriptorFormats.find((each) => each.name === format), kind, BigInt(bits)).map(({ field, stored, value, legal }) => [field.name, stored, value, legal]),
  compress: ({ spelling, row }) => {
    const { pattern } = ptxmma.instruction(spelling);
    const pruned = ptxmma.prunedRow(row, pattern);
    return { pruned, ...ptxmma.compressedRow(pruned, pattern), crowded: ptxmma.compressedRow(row, pattern).crowded };
  },
};

const questions = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(questions.map(({ ask, ...about }) => answers[ask](about))));
