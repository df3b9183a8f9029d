/** The database of PTX matrix instructions: look one up, see where its elements lie, and write code that uses it. */

export { database } from "./database.js";
export { layout, layoutNames } from "./layout_records.js";
export { instructionGroups, instructionOf, instructions } from "./instructions.js";
export { instructionMeant as instruction } from "./spellings.js";
export { resolve } from "./lookup.js";
export { ask, partNamed } from "./questions.js";
export { arrangements, bitsOf } from "./arrangements.js";
export { conversionOf, elementAt, widthOf } from "./conversions.js";
export { toCute, toTriton } from "./interop.js";
export { accessPatterns, bankWords, wavefronts } from "./bank_accesses.js";
export { decodedDescriptor, descriptorFormats, encodedDescriptor, explainedDescriptor, memoryFacts, sharedMemoryOf } from "./descriptors.js";
export { fragmentOf, loadsOf, registerOf } from "./tensor_loads.js";
export { TensorPlaces, tensorMemories, tensorOperands } from "./tensor_places.js";
export { tensorProduct } from "./tensor_products.js";
export { cTensorFunctions, pythonTensorFunctions, tensorCsv } from "./tensor_texts.js";
export { suspicions } from "./suspicions.js";
export { MemoryImage, readableTypes } from "./images.js";
export { compressedRow, fieldBits, keptColumns, prunedRow } from "./sparsity.js";
export { cFunctions, csvText, inlineAssembly, ptxText, pythonFunctions, shortName, wrapperCall } from "./source_texts.js";
