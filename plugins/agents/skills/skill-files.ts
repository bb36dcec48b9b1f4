import { readdir } from 'node:fs/promises'
import path from 'node:path'
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
import { MAX_SKILL_BYTES as MAX_BYTES, parseSkillFile, skillFileIn } from './skill-file.js'

const MAX_SKILLS = 256
/** Maximum nesting of folders that group skills. */
const MAX_DEPTH = 4

/** The skills of an extension, one per SKILL.md below its paths; an unreadable one is left out. */
export async function readSkills(extension: InstalledExtension): Promise<Shipment> {
  const { root, manifest } = extension
  const files = new Set<string>()
  for (const relative of manifest.resources.skills) {
    for (const file of await skillFiles(root, relative, MAX_DEPTH)) files.add(file)
    if (files.size > MAX_SKILLS) throw invalid(root, relative, `it has more than ${MAX_SKILLS} skills`)
  }
  const skills: ShippedRecord[] = []
  const brings: Brought[] = []
  const leftOut: string[] = []
  for (const file of files) {
    try {
      const { spec } = parseSkillFile(
        await readText(root, file, MAX_BYTES),
        path.posix.basename(path.posix.dirname(file)),
      )
      const { name } = spec
      const id = shippedId('skl', extension, name)
      skills.push({ kind: SkillKind, id, name, spec: { ...spec, source_path: file } })
      brings.push(...broughtSkill(name, spec))
    } catch (error) {
      leftOut.push(`${path.join(root, file)}: ${messageOf(error)}`)
    }
  }
  return { records: skills, brings, ...(leftOut.length > 0 && { leftOut }) }
}

/** A skill with its declared servers and hooks; invalid declarations have no effect. */
function broughtSkill(name: string, { metadata }: Record<string, unknown>): Brought[] {
  const { svc } = Object(metadata) as { svc?: unknown }
  const { mcp_servers: servers, hooks } = Object(svc) as { mcp_servers?: unknown; hooks?: unknown }
  return [
    { kind: 'skill', name, about: 'instructions for agents' },
    ...entriesOf(servers).map(([called, server]) => broughtServer(`${name}/${called}`, server)),
    ...entriesOf(hooks).map(([called, hook]) => broughtHook(`${name}/${called}`, hook)),
  ]
}

/** Entries of a list or a table by name. */
const entriesOf = (declared: unknown): [name: string, written: object][] =>
  Object.entries(Object(declared)).map(([key, one]) => [
    String(Array.isArray(declared) ? Object(one).name : key),
    Object(one),
  ])

/**
 * SKILL.md files at or below a path, relative to the root; a skill's folder contains no other skills. Links are not
 * followed.
 */
async function skillFiles(root: string, relative: string, depth: number): Promise<string[]> {
  const entries = await readdir(await resolveInside(root, relative), { withFileTypes: true })
  const file = skillFileIn(entries.map(({ name }) => name))
  if (file !== undefined) return [path.posix.join(relative, file)]
  const below = entries.filter(entry => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name)
  const found: string[] = []
  for (const name of depth > 0 ? below.sort() : []) {
    found.push(...(await skillFiles(root, path.posix.join(relative, name), depth - 1)))
  }
  return found
}

const invalid = (root: string, file: string, what: string) =>
  ExtensionErrors.extension_manifest_invalid(`${path.join(root, file)}: ${what}`, { details: { file } })
