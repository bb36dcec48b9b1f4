export { PatternThread } from './pattern-thread.js'
export { inputProblem, schemaProblem } from './schema-check.js'
