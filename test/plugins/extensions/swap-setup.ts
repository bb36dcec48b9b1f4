import { register } from 'node:module'
import type { Plugin } from '../../../kernel/index.js'

register('../../harness/svc-from-source.mjs', import.meta.url)
const file = new URL('../../../examples/extensions/acme.workspaces/main.js', import.meta.url)
const example: { default: Plugin } = await import(file.href)
const { swapped } = await import('../workspace-scene.js')
swapped.push(example.default)
