import { clip } from '../../kernel/kit/text.js'
import type { Schedule } from '../../schemas/automation.js'

/** A place in a file of another program. */
export interface Place {
  readonly file: string
  /** From 1; 0 where the file as a whole is meant. */
  readonly line: number
}

interface Common extends Place {
  readonly name: string
  /** What a person should know before it is made, a sentence each. */
  readonly notes: readonly string[]
}

/** An MCP server. `secrets` go into the vault under their references, and are printed nowhere. */
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

/** A job: what a run does, and when. */
export interface WantedJob extends Common {
  readonly kind: 'job'
  /** Empty: the agent of the workspace, or the default one. */
  readonly agent: string
  readonly prompt: string
  /** It is disabled where it comes from. */
  readonly enabled?: false
  readonly schedule: Schedule
}

/** A hook of config.json. */
export interface WantedHook extends Common {
  readonly kind: 'hook'
  readonly declaration: Readonly<Record<string, unknown>>
}

/** The definition of an agent, as the file AGENT.md has it. */
export interface WantedAgent extends Common {
  readonly kind: 'agent'
  readonly agent: Readonly<Record<string, unknown>> & { readonly prompt: string }
}

/** A provider of config.json. */
export interface WantedProvider extends Common {
  readonly kind: 'provider'
  readonly settings: Readonly<Record<string, unknown>>
}

/** A skill: the text of its SKILL.md, or a folder that is copied. */
export interface WantedSkill extends Common {
  readonly kind: 'skill'
  readonly from: { readonly text: string } | { readonly folder: string }
}

export type Wanted = WantedServer | WantedJob | WantedHook | WantedAgent | WantedProvider | WantedSkill

/** What has to be done for one planned thing; `carry` does it. */
export type Step =
  | { readonly action: 'unchanged' }
  | { readonly action: 'create' | 'update'; readonly carry: () => Promise<void> }

/** What a file says and svc cannot take over as it stands: the reason, and what helps. */
export interface Left extends Place {
  readonly what: string
  readonly why: string
}

/** What stays where it is: svc, or an agent that it runs, reads the file itself. */
export interface InPlace extends Place {
  readonly what: string
  readonly why: string
}

/** What an importer makes of files. */
export interface Found {
  readonly wanted: readonly Wanted[]
  readonly left: readonly Left[]
  readonly inPlace: readonly InPlace[]
}

/** Why an entry of a file cannot be carried over. */
export class NotCarried extends Error {}

/** Collects what importers find. */
export class Findings implements Found {
  readonly wanted: Wanted[] = []
  readonly left: Left[] = []
  readonly inPlace: InPlace[] = []

  /** Of two with one kind and name the first one counts. */
  want(wanted: Wanted): void {
    const { kind, name, file, line } = wanted
    const same = this.wanted.find(other => other.kind === kind && other.name === name)
    if (!same) this.wanted.push(wanted)
    else this.leave({ file, line }, name, `the name is taken by line ${same.line} of ${same.file}`)
  }

  leave(place: Place, what: string, why: string): void {
    this.left.push({ file: place.file, line: place.line, what, why })
  }

  /** Reads one entry; one that cannot be carried costs itself. */
  entry(place: Place, what: string, read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof NotCarried)) throw error
      this.leave(place, what, error.message)
    }
  }

  stays(place: Place, what: string, why: string): void {
    this.inPlace.push({ file: place.file, line: place.line, what, why })
  }
}

/** What importers know besides the files. */
export interface Around {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Name and home folder of the person who imports. */
  readonly user: string
  readonly userHome: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** Time zone of this machine. */
  readonly timezone: string
  readonly platform: string
  /** Whose: the id of a workspace, absent for everybody. */
  readonly workspaceId?: string
  /** The folder of that workspace. */
  readonly rootDir?: string
  /** Folders of the registered workspaces, whose own files the daemon reads where they are. */
  readonly workspaceRoots?: readonly string[]
  /** The agent that jobs are to run, instead of the one that runs commands. */
  readonly agent?: string
  /** Lines of a crontab name the user that they run as. */
  readonly hasUsers: boolean
}

/** A name of small letters, digits and hyphens; `fallback` where nothing of the text is left. */
export function slug(text: string, fallback: string, max = 48): string {
  const words = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
  return clip(words, max).replace(/-+$/, '') || fallback
}
