export { McpServerKind, type ServerSpec } from './server-kind.js'
