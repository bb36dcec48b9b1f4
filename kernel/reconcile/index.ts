export { ReconcileLoop } from './loop.js'
export * from './types.js'
