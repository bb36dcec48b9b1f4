import { clip } from '../../kernel/kit/text.js'
import type { Schedule } from '../../schemas/automation.js'

/** A place in a file of another program. */
export interface SourceLocation {
  readonly file: string
  /** From 1; 0 for the file as a whole. */
  readonly line: number
}

interface Common extends SourceLocation {
  readonly name: string
  /** Notes for a person before the import, one sentence each. */
  readonly notes: readonly string[]
}

/** An MCP server. `secrets` go to the vault under their references, and are never printed. */
export interface WantedServer extends Common {
  readonly kind: 'mcp_server'
  readonly server: {
    readonly command?: string
    readonly args?: readonly string[]
    readonly url?: string
    readonly env?: Readonly<Record<string, string>>
    readonly secret_env?: Readonly<Record<string, string>>
    readonly headers?: Readonly<Record<string, string>>
    readonly secret_headers?: Readonly<Record<string, string>>
  }
  readonly secrets: Readonly<Record<string, string>>
}

/** A job: prompt and schedule. */
export interface WantedJob extends Common {
  readonly kind: 'job'
  /** Empty: the agent of the workspace, or the default one. */
  readonly agent: string
  readonly prompt: string
  /** The original is disabled. */
  readonly enabled?: false
  readonly schedule: Schedule
}

/** A hook of config.json. */
export interface WantedHook extends Common {
  readonly kind: 'hook'
  readonly declaration: Readonly<Record<string, unknown>>
}

/** An agent definition, in the form of AGENT.md. */
export interface WantedAgent extends Common {
  readonly kind: 'agent'
  readonly agent: Readonly<Record<string, unknown>> & { readonly prompt: string }
}

/** A provider of config.json. */
export interface WantedProvider extends Common {
  readonly kind: 'provider'
  readonly settings: Readonly<Record<string, unknown>>
}

/** A skill: the text of its SKILL.md, or a folder to copy. */
export interface WantedSkill extends Common {
  readonly kind: 'skill'
  readonly from: { readonly text: string } | { readonly folder: string }
}

export type Wanted = WantedServer | WantedJob | WantedHook | WantedAgent | WantedProvider | WantedSkill

/** The step for one planned item; `carry` applies it. */
export type Step =
  | { readonly action: 'unchanged' }
  | { readonly action: 'create' | 'update'; readonly carry: () => Promise<void> }

/** A part of a file that is not imported, with the reason and a remedy. */
export interface Left extends SourceLocation {
  readonly what: string
  readonly why: string
}

/** A file that stays in place, because svc or an agent reads it directly. */
export interface InPlace extends SourceLocation {
  readonly what: string
  readonly why: string
}

/** The result of an importer. */
export interface Found {
  readonly wanted: readonly Wanted[]
  readonly left: readonly Left[]
  readonly inPlace: readonly InPlace[]
}

/** Reason for which an entry of a file cannot be imported. */
export class NotCarried extends Error {}

/** Collects the findings of importers. */
export class Findings implements Found {
  readonly wanted: Wanted[] = []
  readonly left: Left[] = []
  readonly inPlace: InPlace[] = []

  /** Adds an item; of two with the same kind and name the first one counts. */
  want(wanted: Wanted): void {
    const { kind, name, file, line } = wanted
    const same = this.wanted.find(other => other.kind === kind && other.name === name)
    if (!same) this.wanted.push(wanted)
    else this.leave({ file, line }, name, `the name is taken by line ${same.line} of ${same.file}`)
  }

  leave(location: SourceLocation, what: string, why: string): void {
    this.left.push({ file: location.file, line: location.line, what, why })
  }

  /** Reads one entry; an entry that cannot be imported does not affect the others. */
  entry(location: SourceLocation, what: string, read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof NotCarried)) throw error
      this.leave(location, what, error.message)
    }
  }

  stays(location: SourceLocation, what: string, why: string): void {
    this.inPlace.push({ file: location.file, line: location.line, what, why })
  }
}

/** Context of importers besides the files. */
export interface Around {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Name and home folder of the importing person. */
  readonly user: string
  readonly userHome: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** Time zone of this machine. */
  readonly timezone: string
  readonly platform: string
  /** ID of the target workspace; absent for a global import. */
  readonly workspaceId?: string
  /** The folder of that workspace. */
  readonly rootDir?: string
  /** Folders of the registered workspaces, whose own files the daemon reads in place. */
  readonly workspaceRoots?: readonly string[]
  /** The agent for jobs, instead of the one that runs commands. */
  readonly agent?: string
  /** Whether the lines of a crontab contain a user. */
  readonly hasUsers: boolean
}

/** A name of lower-case letters, digits and hyphens; `fallback` when no character remains. */
export function slug(text: string, fallback: string, max = 48): string {
  const words = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
  return clip(words, max).replace(/-+$/, '') || fallback
}
