// The types of the contract. They live in the npm package, which must carry its own.
export * from "./electron/contract.js";
