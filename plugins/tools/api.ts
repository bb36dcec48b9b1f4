export { ToolKind, type ToolSpec } from './tool-kind.js'
