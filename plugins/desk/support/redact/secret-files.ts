import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { isSecretName } from './names.js'
import type { Scrubber } from './scrubber.js'

const MAX_BYTES = 1024 * 1024
const MOST_AGENTS = 500
/** `NAME=value`, `name: value` and `"name": "value"`, also within a list of arguments. */
const ASSIGNED = /["']?([A-Za-z][\w.-]{0,127})["']?\s*[=:]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s,"'\]}]+))/g

/** Hides values with secret names in files of the home: variables, and environments of agents. */
export async function readSecretFiles(root: string, scrubber: Scrubber): Promise<void> {
  const agents = await readdir(path.join(root, 'agents')).catch(() => [])
  const files = [
    '.env',
    'mcp.json',
    '.mcp.json',
    ...agents.slice(0, MOST_AGENTS).map(name => path.join('agents', name, 'AGENT.md')),
  ]
  for (const file of files) {
    const text = await readRegularFile(path.join(root, file), { maxBytes: MAX_BYTES }).catch(() => undefined)
    if (text) hideAssigned(text.toString(), scrubber)
  }
}

/** Hides values that a text assigns to secret names. */
export function hideAssigned(text: string, scrubber: Scrubber): void {
  for (const [, name = '', double, single, plain] of text.matchAll(ASSIGNED))
    if (isSecretName(name)) scrubber.hide(double ?? single ?? plain ?? '')
}
