import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { headValues, parseHead, splitFrontmatter } from '../../../kernel/kit/frontmatter.js'
import { messageOf } from '../../../kernel/plugin.js'
import {
  type Brought,
  broughtHook,
  broughtServer,
  ExtensionErrors,
  type InstalledExtension,
  readText,
  resolveInside,
  type Shipment,
  type ShippedRecord,
  shippedId,
} from '../../delivery/extensions/api.js'
import { SkillKind } from './api.js'

const FILE = 'SKILL.md'
const MAX_BYTES = 512 * 1024
const MAX_SKILLS = 256
/** How deep folders that only group skills may be nested. */
const MAX_DEPTH = 4

/** The skills of an extension, one for each SKILL.md below its paths. Throws `extension_manifest_invalid`, naming the file. */
export async function readSkills(extension: InstalledExtension): Promise<Shipment> {
  const { root, manifest } = extension
  const folders = new Set<string>()
  for (const relative of manifest.resources.skills) {
    for (const folder of await skillFolders(root, relative, MAX_DEPTH)) folders.add(folder)
    if (folders.size > MAX_SKILLS) throw invalid(root, relative, `it has more than ${MAX_SKILLS} skills`)
  }
  const skills: ShippedRecord[] = []
  const brings: Brought[] = []
  for (const folder of folders) {
    const file = path.posix.join(folder, FILE)
    try {
      const spec = parseSkill(await readText(root, file, MAX_BYTES))
      const name = String(spec.name ?? '')
      const id = shippedId('skl', extension, name)
      skills.push({ kind: SkillKind, id, name, spec: { ...spec, source_path: file } })
      brings.push(...broughtSkill(name, spec))
    } catch (error) {
      throw invalid(root, file, messageOf(error))
    }
  }
  return { records: skills, brings }
}

/** A skill with what its metadata declares; what cannot be read there is in force nowhere. */
function broughtSkill(name: string, { metadata }: Record<string, unknown>): Brought[] {
  const { svc } = Object(metadata) as { svc?: unknown }
  const { mcp_servers: servers, hooks } = Object(svc) as { mcp_servers?: unknown; hooks?: unknown }
  return [
    { kind: 'skill', name, about: 'instructions for agents' },
    ...entriesOf(servers).map(([called, server]) => broughtServer(`${name}/${called}`, server)),
    ...entriesOf(hooks).map(([called, hook]) => broughtHook(`${name}/${called}`, hook)),
  ]
}

/** A list with names, or by name. */
const entriesOf = (declared: unknown): [name: string, written: object][] =>
  Object.entries(Object(declared)).map(([key, one]) => [
    String(Array.isArray(declared) ? Object(one).name : key),
    Object(one),
  ])

/** Folders with a SKILL.md at or below a path, relative to the root; one with a skill has no others in it. Links are not followed. */
async function skillFolders(root: string, relative: string, depth: number): Promise<string[]> {
  const entries = await readdir(await resolveInside(root, relative), { withFileTypes: true })
  if (entries.some(({ name }) => name === FILE)) return [relative]
  const below = entries.filter(entry => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name)
  const found: string[] = []
  for (const name of depth > 0 ? below.sort() : []) {
    found.push(...(await skillFolders(root, path.posix.join(relative, name), depth - 1)))
  }
  return found
}

/** The frontmatter of a SKILL.md with its body; what the fields must be is the kind's affair. */
function parseSkill(text: string): Record<string, unknown> {
  const split = splitFrontmatter(text)
  if (typeof split === 'string')
    throw new Error('it must start with a line ---, and a second one closes the frontmatter')
  return { ...headValues(parseHead(split.head)), body: split.body.trim() }
}

const invalid = (root: string, file: string, what: string) =>
  ExtensionErrors.extension_manifest_invalid(`${path.join(root, file)}: ${what}`, { details: { file } })
