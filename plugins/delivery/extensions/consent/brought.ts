import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'

/** One item that needs consent: the program it runs, the addresses it reaches and the secrets it receives. */
export interface Brought {
  readonly kind:
    | 'process'
    | 'mcp server'
    | 'hook'
    | 'agent'
    | 'skill'
    | 'tool'
    | 'bundle'
    | 'job'
    | 'trigger'
    | 'bridge'
    | 'layout'
    | 'sidecar'
    | 'event'
    | 'records'
    | 'network'
  /** Unique within its kind; the name of a nested item begins with that of the outer one. */
  readonly name: string
  /** Command line of a program, as written. */
  readonly runs?: string
  /** Addresses that the daemon sends requests to. */
  readonly reaches?: readonly string[]
  /** References to the secrets and variables that it is given: `vault:…`, `env:NAME`. */
  readonly given?: readonly string[]
  /** Name of its sandbox profile. */
  readonly sandbox?: string
  /** For people: the time at which the item runs, or its permissions. */
  readonly about?: string
}

type Words = Readonly<Record<string, unknown>>
const isWords = (value: unknown): value is Words => typeof value === 'object' && value !== null && !Array.isArray(value)
const textsIn = (value: unknown): string[] =>
  Object.values(isWords(value) || Array.isArray(value) ? value : {}).filter(one => typeof one === 'string')

/** References to the daemon's variables in the form of secret references, from `{{env:NAME}}` in a command. */
const variablesIn = (texts: readonly string[]): string[] =>
  texts.flatMap(text =>
    [...text.matchAll(/\{\{env:([A-Za-z_][A-Za-z0-9_]*)\}\}/g)].map(([, name = '']) => `env:${name}`),
  )

/** Escapes control, format and separator characters, which can hide text or change how it is displayed. */
const visible = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, sign => `\\u{${sign.codePointAt(0)?.toString(16)}}`)

/** A word of a command line, in quotation marks if it could be read as several. */
const quoted = (word: string): string => (/^[\w@%+=:,./{}~-]+$/.test(word) ? word : visible(JSON.stringify(word)))

/** A command line: variables, command, arguments. */
function commandLine({ command, args, env }: Words): string | undefined {
  if (typeof command !== 'string') return undefined
  const variables = Object.entries(isWords(env) ? env : {}).map(([name, value]) => `${name}=${quoted(String(value))}`)
  return [...variables, quoted(command), ...textsIn(args).map(quoted)].join(' ')
}

/** An item that starts a program or sends requests: a server, a hook or a process. */
function called(kind: Brought['kind'], name: string, written: Words): Brought {
  const auth = isWords(written.auth) ? written.auth : {}
  const runs = commandLine(written)
  const reaches = [written.url, ...Object.entries(auth).map(([key, value]) => (/_url$/.test(key) ? value : undefined))]
  const literal = [written.command, ...textsIn(written.args), ...textsIn(written.env), ...textsIn(written.headers)]
  const references = [
    ...textsIn(written.secret_env),
    ...textsIn(written.secret_headers),
    ...variablesIn(literal.filter(text => typeof text === 'string')),
    auth.client_secret_ref,
  ]
  const unique = (values: readonly unknown[]) =>
    [...new Set(values.filter(one => typeof one === 'string').map(visible))].sort()
  return {
    kind,
    name: visible(name),
    ...(runs === undefined ? {} : { runs }),
    ...(reaches.some(Boolean) ? { reaches: unique(reaches) } : {}),
    ...(references.some(Boolean) ? { given: unique(references) } : {}),
    ...(typeof written.sandbox === 'string' ? { sandbox: visible(written.sandbox) } : {}),
  }
}

/** An MCP server as a manifest, a skill or an agent declares it. */
export const broughtServer = (name: string, written: object): Brought => called('mcp server', name, written as Words)

/** A hook; its executor is in `executor` or in the same table. */
export function broughtHook(name: string, written: object): Brought {
  const { executor, ...flat } = written as Words
  const whole = { ...flat, ...(isWords(executor) ? executor : {}) } as Words
  const { event, mode, required } = whole
  const how = [String(event), mode, required === true ? 'required' : undefined].filter(Boolean)
  return { ...called('hook', name, whole), about: visible(`on ${how.join(', ')}`) }
}

/** Rights of a process besides its command. */
interface ProcessRights {
  readonly subprocess?: object | undefined
  /** Methods of the Host API. */
  readonly permissions: readonly string[]
  readonly provides: readonly string[]
  /** References to optional variables. */
  readonly asksFor: readonly string[]
}

/** The process of an extension with its optional variables. */
export function broughtProcess(name: string, { subprocess, permissions, provides, asksFor }: ProcessRights): Brought[] {
  if (subprocess === undefined) return []
  const rights = [
    permissions.length > 0 ? `may call ${[...permissions].sort().join(', ')}` : '',
    provides.length > 0 ? `provides ${[...provides].sort().join(', ')}` : '',
  ].filter(Boolean)
  const process = called('process', name, subprocess as Words)
  const references = [...new Set([...(process.given ?? []), ...asksFor])].sort()
  return [
    {
      ...process,
      ...(references.length > 0 ? { given: references } : {}),
      ...(rights.length > 0 ? { about: rights.join('; ') } : {}),
    },
  ]
}

/** Kinds of records that a process may publish. */
export const broughtPublication = (
  publish: { readonly families: readonly string[]; readonly max_scope: string } | undefined,
): Brought[] =>
  (publish?.families ?? []).map(family => ({
    kind: 'records',
    name: family,
    about: `its process publishes them ${publish?.max_scope === 'workspace' ? 'in its workspace' : 'everywhere'}`,
  }))

/** Taking part in a network, which has a separate confirmation by digest as well. */
export const broughtNetwork = (
  net: { readonly required: boolean; readonly channel_scopes?: readonly string[] | undefined } | undefined,
): Brought[] =>
  net?.required
    ? [
        {
          kind: 'network',
          name: 'participation',
          about: visible(`channels ${[...(net.channel_scopes ?? ['all'])].sort().join(', ')}`),
        },
      ]
    : []

/** Effects of the files beside an AGENT.md, by name. */
const SIDECARS: Readonly<Record<string, string>> = {
  'SOUL.md': 'instructions for the agent',
  'HEARTBEAT.md': 'wakes sessions of the agent',
}

/** Names of the files beside an AGENT.md that the daemon reads. */
export const sidecarFiles = Object.keys(SIDECARS)

/** A file beside an AGENT.md. */
export const broughtSidecar = (agent: string, file: string): Brought => ({
  kind: 'sidecar',
  name: `${agent}/${file}`,
  about: SIDECARS[file] ?? file,
})

/** An agent with the servers and hooks of its definition. */
export function broughtAgent(
  name: string,
  spec: {
    readonly command?: string | undefined
    readonly provider?: string | undefined
    readonly permissions?: string | undefined
    readonly mcp_servers?: readonly { readonly name: string }[] | undefined
    readonly hooks?: readonly { readonly name: string }[] | undefined
  },
): Brought[] {
  const { command, provider, permissions, mcp_servers = [], hooks = [] } = spec
  const about = [provider && `provider ${provider}`, permissions && `permissions ${permissions}`].filter(Boolean)
  return [
    {
      kind: 'agent',
      name,
      // The command is one text, split with the quoting of a shell.
      ...(command === undefined ? {} : { runs: visible(command) }),
      ...(about.length > 0 ? { about: visible(about.join(', ')) } : {}),
    },
    ...mcp_servers.map(server => broughtServer(`${name}/${server.name}`, server)),
    ...hooks.map(hook => broughtHook(`${name}/${hook.name}`, hook)),
  ]
}

/** Escapes hidden characters in the name and description, which come from files of the author. */
export const unhidden = (one: Brought): Brought => ({
  ...one,
  name: visible(one.name),
  ...(one.about === undefined ? {} : { about: visible(one.about) }),
})

/** Sorted, so that the same things have one digest. */
export const inOrder = (brought: readonly Brought[]): Brought[] =>
  brought
    .map(one => ({ one, key: canonicalJson([one.kind, one.name, one]) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ one }) => one)

/** SHA-256, hex, of all that an extension brings: the list that a person consents to. Empty for an empty list. */
export function consentDigest(brought: readonly Brought[]): string {
  if (brought.length === 0) return ''
  return createHash('sha256')
    .update(canonicalJson(inOrder(brought)))
    .digest('hex')
}

/** Items that the earlier consent does not cover. */
export function beyond(brought: readonly Brought[], consented: readonly Brought[]): Brought[] {
  const known = new Set(consented.map(one => canonicalJson(one)))
  return brought.filter(one => !known.has(canonicalJson(one)))
}
