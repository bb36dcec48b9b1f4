import type { Plugin } from '../../../../kernel/plugin.js'
import { replacements } from '../../desk/workspace-scene.js'

const file = new URL('../../../../examples/extensions/acme.workspaces/main.js', import.meta.url)
const example: { default: Plugin } = await import(file.href)
replacements.push(example.default)
