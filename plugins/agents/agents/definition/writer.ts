import { lstat, mkdir, realpath, rm, rmdir, stat, unlink } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../../kernel/kit/serial.js'
import { shown } from '../../../../kernel/kit/text.js'
import { KernelErrors, messageOf } from '../../../../kernel/plugin.js'
import type { AgentInput } from '../../../../schemas/agents.js'
import { isInside, syncFolder, writeWhole } from '../../../desk/workspaces/api.js'
import { AgentErrors } from '../api.js'
import { DefinitionError, digestOf } from './definition.js'
import { parseDefinition, parseFile, renderDefinition } from './definition-file.js'
import { type AgentFolder, definitionFile, readDefinitionFile } from './files.js'
import { AGENT_NAME, type Frontmatter } from './frontmatter.js'

/** Members of a definition file that requests cannot write; an update keeps them. */
export type Kept = Pick<Frontmatter, 'mcp_servers' | 'hooks'>

/**
 * Writes definition files atomically and durably, one at a time. Every path is resolved before the check: one that
 * leads out of its root is refused.
 */
export class DefinitionWriter {
  readonly #writes = new Serial()

  /** @param unique creates names of temporary files */
  constructor(private readonly unique: () => string) {}

  /** Throws `agent_exists` (409), `agent_invalid` and `agent_unwritable` (422). */
  create(where: AgentFolder, input: AgentInput, kept: Kept = {}): Promise<void> {
    // The name has no line in a file yet.
    if (!AGENT_NAME.test(input.name.trim())) {
      const text = `${shown(input.name)} is not a name of a-z, 0-9, _ and -, at most 64 characters`
      throw AgentErrors.agent_invalid(text, { next: 'choose another name' })
    }
    return this.#alone(where, input.name, async file => {
      const text = renderChecked(where, { ...fieldsOf(input), ...kept }, input.prompt)
      const folder = path.dirname(file)
      await this.#inside(where, await existing(folder))
      await mkdir(folder, { recursive: true, mode: where.source === 'home' ? 0o700 : 0o755 })
      const real = await this.#inside(where, folder)
      const made = await writeWhole(path.join(real, 'AGENT.md'), text, { how: 'create', unique: this.unique() })
      if (!made) throw AgentErrors.agent_exists(`there is an agent ${input.name} already: ${file}`)
      // The folder and its parents may be new.
      await syncFolder(path.dirname(folder))
      await syncFolder(path.dirname(path.dirname(folder)))
    })
  }

  /** Throws `agent_changed` (409) unless the file has that digest, `agent_invalid` and `agent_unwritable` (422). */
  replace(where: AgentFolder, input: AgentInput, expectedDigest: string | undefined): Promise<void> {
    return this.#alone(where, input.name, async file => {
      const real = await this.#inside(where, file)
      const before = await readDefinitionFile(real)
      const digest = digestOf(before)
      if (digest !== expectedDigest) throw changed(input.name, digest, expectedDigest)
      const { fields, head, leftOut } = parseFile(before)
      // Writing the parsed content back would delete left-out entries.
      if (leftOut.length > 0) throw new DefinitionError('field', `fix or remove this in ${file} first: ${leftOut[0]}`)
      const { mcp_servers, hooks } = fields
      const text = renderChecked(where, { ...fieldsOf(input), mcp_servers, hooks }, input.prompt, head)
      const { mode } = await stat(real)
      await writeWhole(real, text, { how: 'replace', unique: this.unique(), mode: mode & 0o777 })
    })
  }

  /** Removes the definition, and its folder if that is empty then. A link to the folder is removed, not its target. */
  remove(where: AgentFolder, name: string): Promise<void> {
    return this.#alone(where, name, async file => {
      const folder = path.dirname(file)
      if ((await lstat(folder)).isSymbolicLink()) await unlink(folder)
      else {
        await this.#inside(where, folder)
        await rm(file)
        await rmdir(folder).catch(() => syncFolder(folder))
      }
      await syncFolder(where.folder)
    })
  }

  async #inside(where: AgentFolder, file: string): Promise<string> {
    const [real, root] = await Promise.all([realpath(file), realpath(where.root)])
    if (isInside(real, root)) return real
    throw AgentErrors.agent_unwritable(`${file} is a link that leads out of ${root}, to ${real}`)
  }

  /** Serializes writes: no other request changes a file between its check and its change. */
  #alone(where: AgentFolder, name: string, write: (file: string) => Promise<void>): Promise<void> {
    const file = definitionFile(where.folder, name)
    return this.#writes.run(async () => {
      try {
        await write(file)
      } catch (error) {
        throw faultOf(error, file)
      }
    })
  }
}

/** The nearest existing folder at or above a path, so that nothing is created behind a link that leads out. */
async function existing(folder: string): Promise<string> {
  const there = await realpath(folder).catch(() => undefined)
  return there === undefined && path.dirname(folder) !== folder ? existing(path.dirname(folder)) : folder
}

function renderChecked(where: AgentFolder, fields: Frontmatter, prompt: string, oldHead?: string): string {
  const text = renderDefinition(fields, prompt, oldHead)
  // Parsed again with the file's own rules, so that nothing unreadable can be written.
  const { leftOut = [] } = parseDefinition(fields.name, Buffer.from(text), {
    origin: where.origin,
    source: where.source,
  })
  if (leftOut.length > 0) throw new DefinitionError('field', leftOut.join('; '))
  return text
}

function fieldsOf({ prompt: _prompt, skills, ...fields }: AgentInput): Frontmatter {
  return { ...fields, ...(skills ? { skills } : {}) }
}

function changed(name: string, digest: string, expected: string | undefined) {
  const why = expected === undefined ? 'an update needs expected_digest' : 'it has changed since it was read'
  return AgentErrors.agent_changed(`agent ${name} is not updated: ${why}; its digest is ${digest}`, {
    details: { definition_digest: digest },
    next: command('agent info', name),
  })
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'the daemon may not write there',
  EPERM: 'the daemon may not write there',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of the path is not a folder',
  ENAMETOOLONG: 'the path is too long',
  EISDIR: 'a folder is in its place',
}

function faultOf(error: unknown, file: string): unknown {
  if (error instanceof DefinitionError)
    return AgentErrors.agent_invalid(error.message, { details: { error_kind: error.kind } })
  const { code = '' } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return KernelErrors.disk_full(undefined, { cause: error })
  if (code === 'ENOENT') return AgentErrors.agent_not_found(`${file} no longer exists`)
  const why = REASONS[code]
  return why === undefined ? error : AgentErrors.agent_unwritable(`${file}: ${why} (${messageOf(error)})`)
}
