export { HookKind, type HookSpec } from './hook-kind.js'
