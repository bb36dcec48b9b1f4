import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { parse } from 'smol-toml'
import * as v from 'valibot'
import { readRegularFile } from '../../../kernel/kit/read-file.js'

const MAX_BYTES = 64 * 1024
const MAX_FILES = 256
const Id = v.pipe(v.string(), v.minLength(1), v.maxLength(128))
const Capabilities = v.object({
  capabilities: v.pipe(
    v.array(
      v.union([
        Id,
        v.pipe(
          v.object({ id: Id }),
          v.transform(({ id }) => id),
        ),
      ]),
    ),
    v.maxLength(MAX_FILES),
  ),
})
/** A file in the folder is one capability: its `id`, else its file name. */
const Capability = v.object({ id: v.optional(Id) })

/**
 * Capabilities that an agent declares beside its AGENT.md: ids or tables with an `id` in `capabilities.toml`, and files
 * in the folder `capabilities`.
 * @param folder that of the agent
 * @returns an empty set if there are none; undefined if one is unusable, so that no gate is met
 */
export async function capabilitiesOf(folder: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const bytes = await read(path.join(folder, 'capabilities.toml'))
    const listed = bytes === undefined ? [] : v.parse(Capabilities, parse(bytes)).capabilities
    return new Set([...listed, ...(await ofFolder(path.join(folder, 'capabilities')))])
  } catch {
    return undefined
  }
}

async function ofFolder(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(error => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const files = entries.filter(entry => entry.isFile() && entry.name.endsWith('.toml'))
  if (files.length > MAX_FILES) throw new Error(`more than ${MAX_FILES} files`)
  const ids: string[] = []
  for (const { name } of files) {
    const { id } = v.parse(Capability, parse((await read(path.join(folder, name))) ?? ''))
    ids.push(id ?? name.slice(0, -'.toml'.length))
  }
  return ids
}

async function read(file: string): Promise<string | undefined> {
  const bytes = await readRegularFile(file, { maxBytes: MAX_BYTES, links: 'refuse' })
  return bytes?.toString('utf8').replace(/^\uFEFF/, '')
}
