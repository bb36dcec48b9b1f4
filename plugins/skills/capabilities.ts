import path from 'node:path'
import { parse } from 'smol-toml'
import * as v from 'valibot'
import { readRegularFile } from '../../kernel/plugin.js'

const MAX_BYTES = 64 * 1024
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
    v.maxLength(256),
  ),
})

/**
 * What an agent says that it can do, in `capabilities.toml` beside its AGENT.md: ids, or tables with an `id`.
 * @param folder that of the agent
 * @returns an empty set where there is no such file; undefined for one that cannot be used, so that no gate is met by it
 */
export async function capabilitiesOf(folder: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const bytes = await readRegularFile(path.join(folder, 'capabilities.toml'), {
      maxBytes: MAX_BYTES,
      links: 'refuse',
    })
    return new Set(bytes ? v.parse(Capabilities, parse(bytes.toString('utf8'))).capabilities : [])
  } catch {
    return undefined
  }
}
