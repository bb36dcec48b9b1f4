import { mkdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { replaceDurably } from '../../kernel/kit/durable-file.js'
import { readRegularFile } from '../../kernel/kit/read-file.js'
import { CliFault } from '../fault.js'
import { filesBelow } from './foreign-file.js'
import type { Step, WantedSkill } from './plan.js'

/** Maximum bytes of one skill, and maximum depth of its folders. */
const MOST_BYTES = 8 * 1024 * 1024
const MOST_DEPTH = 6

interface SkillFile {
  readonly bytes: Uint8Array
  readonly mode: number
}

/**
 * Copies a skill into a skill folder. Files added there stay.
 * @param root the real path of the folder must be in this one
 */
export async function skillStep(
  { name, from }: WantedSkill,
  { root, folder }: { root: string; folder: string },
): Promise<Step> {
  const files =
    'text' in from ? new Map([['SKILL.md', { bytes: Buffer.from(from.text), mode: 0o600 }]]) : await read(from.folder)
  const target = join(folder, name)
  await mustLieIn(root, target)
  const before = await read(target)
  const changed = [...files].filter(([path, { bytes }]) => !equal(before.get(path)?.bytes, bytes))
  if (changed.length === 0) return { action: 'unchanged' }
  const carry = async () => {
    for (const [path, { bytes, mode }] of changed) {
      const file = join(target, path)
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      await mustLieIn(root, file)
      await replaceDurably(file, bytes, { mode })
    }
  }
  return { action: before.size > 0 ? 'update' : 'create', carry }
}

const equal = (a: Uint8Array | undefined, b: Uint8Array) => a !== undefined && Buffer.compare(a, b) === 0

/** The files of a skill by relative path. @throws CliFault above the size limit */
async function read(folder: string): Promise<Map<string, SkillFile>> {
  const files = new Map<string, SkillFile>()
  let left = MOST_BYTES
  for (const path of await filesBelow(folder, () => true, MOST_DEPTH)) {
    const bytes = left > 0 ? await readRegularFile(path, { maxBytes: left }) : undefined
    if (!bytes) throw new CliFault('import_skill_too_large', `${folder} has more than ${MOST_BYTES} bytes`)
    left -= bytes.length
    const isProgram = ((await stat(path)).mode & 0o100) !== 0
    files.set(relative(folder, path), { bytes, mode: isProgram ? 0o700 : 0o600 })
  }
  return files
}

/** A symlink in a repository must not redirect writes out of it. @throws CliFault */
async function mustLieIn(root: string, path: string): Promise<void> {
  const real = await nearest(path)
  const inside = await realpath(root)
  if (real === inside || real.startsWith(inside + sep)) return
  throw new CliFault('import_path_outside', `${path} is a link that leads out of ${root}`)
}

/** Real path of the nearest existing ancestor of a path. */
async function nearest(path: string): Promise<string> {
  return realpath(path).catch(() => nearest(dirname(path)))
}
