import { shown } from '../../../kernel/kit/text.js'
import type { JudgedSkill } from './api.js'
import { mixedScripts } from './look-alikes.js'
import { scan } from './scan.js'
import { parseSkillFile, SKILL_FILE } from './skill-file.js'
import { textOf } from './skill-folder.js'
import { hashFiles, META_FILE, TREE_LIMITS } from './tree-hash.js'

/** Judges the files of a skill before its installation. Throws an Error with the reason of a refusal. */
export function judgeFiles(files: readonly { readonly path: string; readonly bytes: Uint8Array }[]): JudgedSkill {
  const main = files.find(({ path }) => path === SKILL_FILE)
  const text = main && textOf(main.bytes)
  if (text === undefined) throw new Error(`there is no ${SKILL_FILE} in it, or it is not valid UTF-8`)
  if (files.some(({ path }) => path === META_FILE)) throw new Error(`it contains its own ${META_FILE}`)
  if (files.length > TREE_LIMITS.files) throw new Error(`it has more than ${TREE_LIMITS.files} files`)
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0)
  if (bytes > TREE_LIMITS.bytes) throw new Error(`it has more than ${TREE_LIMITS.bytes} bytes`)
  const deep = files.find(({ path }) => path.split('/').length > TREE_LIMITS.depth)
  if (deep) throw new Error(`${shown(deep.path)} is nested too deeply`)
  const { spec, unknown, remarks } = parseSkillFile(text)
  const found = files.flatMap(({ path, bytes }) => scan(textOf(bytes) ?? '', path))
  const critical = found.find(({ severity }) => severity === 'critical')
  if (critical) throw new Error(critical.message)
  return {
    name: spec.name,
    ...(spec.version !== undefined && { version: spec.version }),
    hash: hashFiles(files),
    warnings: [
      ...[...mixedScripts(spec.name), ...found].map(({ message }) => message),
      ...remarks,
      ...unknown.map(key => `unknown field ${shown(key, 64)}`),
    ],
  }
}
