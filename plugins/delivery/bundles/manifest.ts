import * as v from 'valibot'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { text } from '../../../kernel/kit/text.js'
import { FireLimit, JobTask, Retry, Schedule } from '../../../schemas/automation.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { lineNear, type Read, readLines } from '../extensions/api.js'

/** A problem of a bundle: its file, its key and a message. */
export interface BundleProblem {
  /** Relative to the extension. */
  readonly file: string
  /** Dotted path; empty for a problem of the whole file. */
  readonly key: string
  readonly message: string
  /** From 1, of the key or the nearest one above it. */
  readonly line?: number | undefined
}

const name = v.pipe(
  v.string(),
  v.trim(),
  v.regex(/^[^/\\\p{Cc}]{1,64}$/u, 'a name of at most 64 characters without slashes'),
)
const description = v.optional(text(2000, 0))
const relativePath = v.pipe(
  v.string(),
  v.regex(/^(?![/\\~])[^\\\p{Cc}]{1,1024}$/u, 'a path below the extension, relative, with /'),
  v.check(path => !path.split('/').includes('..'), 'a path without ..'),
)
const listOf = <T>(item: v.GenericSchema<unknown, T>) => v.optional(v.pipe(v.array(item), v.maxLength(256)), [])

/** The agent that does the work: `agent`, or `agent_name` as in all other specs. */
const worker = { agent: v.optional(v.string()), agent_name: v.optional(v.string()) }
const loopTarget = v.strictObject({
  loop_name: v.string(),
  workspace_id: v.optional(v.string()),
  inputs: v.optional(mapOf(v.string(), v.unknown())),
  input_mapping: v.optional(mapOf(v.string(), v.string())),
})
const definition = {
  name,
  ...worker,
  description,
  prompt: v.optional(v.string()),
  enabled: v.optional(v.boolean(), true),
  target_kind: v.optional(v.picklist(['agent', 'loop'])),
  fire_limit: v.optional(FireLimit),
  retry: v.optional(Retry),
  loop_target: v.optional(loopTarget),
}

const JobPreset = v.strictObject({ ...definition, schedule: v.optional(Schedule), task: v.optional(JobTask) })
export type JobPreset = v.InferOutput<typeof JobPreset>

const TriggerPreset = v.strictObject({
  ...definition,
  event: v.string(),
  filter: v.optional(mapOf(v.string(), v.string())),
  endpoint_slug: v.optional(v.string()),
  webhook_id: v.optional(v.string()),
  webhook_secret_ref: v.optional(v.string()),
})
export type TriggerPreset = v.InferOutput<typeof TriggerPreset>

const flag = v.optional(v.boolean())
const BridgePreset = v.strictObject({
  name,
  description,
  display_name: text(200),
  platform: v.optional(v.string()),
  extension_name: v.optional(v.string()),
  routing_policy: v.strictObject({ include_group: flag, include_peer: flag, include_thread: flag }),
  dm_policy: v.optional(v.string()),
  delivery_defaults: v.optional(mapOf(v.string(), v.unknown())),
  provider_config: v.optional(mapOf(v.string(), v.unknown())),
  notification_suppress: flag,
  secret_slots: listOf(v.strictObject({ name: v.string(), kind: v.optional(v.string()), description, required: flag })),
})
export type BridgePreset = v.InferOutput<typeof BridgePreset>

const Channel = v.strictObject({ name, description })
export type Channel = v.InferOutput<typeof Channel>

const Profile = v.strictObject({
  name,
  description,
  channels: v.optional(v.strictObject({ primary: v.optional(v.string()), items: listOf(Channel) }), {}),
  agents: listOf(v.strictObject({ path: relativePath, name: v.optional(name) })),
  layouts: listOf(v.strictObject({ path: relativePath, id: v.optional(v.string()) })),
  jobs: listOf(JobPreset),
  triggers: listOf(TriggerPreset),
  bridges: listOf(BridgePreset),
})
export type ProfileManifest = v.InferOutput<typeof Profile>

export const Bundle = v.strictObject({
  name,
  description,
  version: v.optional(v.string()),
  profiles: v.pipe(v.array(Profile), v.minLength(1, 'at least one profile'), v.maxLength(64)),
})
/** A bundle as its file declares it. */
export type BundleManifest = v.InferOutput<typeof Bundle>

/** A parsed bundle, with the line of each key. */
export interface ParsedBundle {
  readonly manifest: BundleManifest
  readonly lineOf: (key: string) => number
}

/** Parses the text of a bundle file, `.toml` or `.json`. Returns the bundle or all its problems. */
export function parseBundle(file: string, text: string): ParsedBundle | readonly BundleProblem[] {
  let source: Read
  try {
    source = readLines(text, file, (line, keys, what) => new Broken({ file, line, key: keys.join('.'), message: what }))
  } catch (error) {
    if (error instanceof Broken) return [error.problem]
    throw error
  }
  const hoisted = hoist(source.value)
  const below = 'wrong' in hoisted ? [] : hoisted.below
  const lineOf = (key: string) => {
    const keys = key.split('.')
    if (keys[0] === 'bundle') return lineNear(source, keys)
    return source.lineOf(['bundle', ...keys]) || lineNear(source, [...below, ...keys])
  }
  const problem = ({ key, message }: Keyed): BundleProblem => ({ file, key, message, line: lineOf(key) })
  if ('wrong' in hoisted) return [problem({ key: hoisted.key, message: hoisted.wrong })]
  const decoded = v.safeParse(Bundle, hoisted.value)
  if (!decoded.success) {
    return decoded.issues.map(issue =>
      problem({
        key: [...below, v.getDotPath(issue) ?? ''].filter(part => part !== '').join('.'),
        message: issue.type === 'strict_object' && issue.expected === 'never' ? 'unknown member' : issueText(issue),
      }),
    )
  }
  const wrong = decoded.output.profiles.flatMap((profile, at) => profileProblems(profile, `profiles.${at}`))
  wrong.push(...twice(decoded.output.profiles, 'profiles', 'profile'))
  return wrong.length > 0 ? wrong.map(problem) : { manifest: decoded.output, lineOf }
}

/** The text could not be parsed. */
class Broken extends Error {
  constructor(readonly problem: BundleProblem) {
    super(problem.message)
  }
}

type Hoisted =
  | { readonly value: unknown; readonly below: readonly string[] }
  | { readonly wrong: string; readonly key: string }

/** Fields may be at the root or below `[bundle]`; profiles at one of the two, not at both. */
function hoist(value: Readonly<Record<string, unknown>>): Hoisted {
  const { bundle, $schema, ...root } = value
  if ($schema !== undefined && typeof $schema !== 'string') return { wrong: 'a text', key: '$schema' }
  if (bundle === undefined) return { value: root, below: [] }
  if (typeof bundle !== 'object' || bundle === null || Array.isArray(bundle))
    return { wrong: 'a table of members', key: 'bundle' }
  const both = Object.keys(bundle).find(key => key in root)
  if (both !== undefined) return { wrong: 'it also occurs at the root; set it once', key: `bundle.${both}` }
  return { value: { ...root, ...bundle }, below: 'profiles' in bundle ? ['bundle'] : [] }
}

type Keyed = Pick<BundleProblem, 'key' | 'message'>

/** Problems of one profile that the schema cannot express. */
function profileProblems(profile: ProfileManifest, at: string): Keyed[] {
  const { channels, jobs, triggers, bridges } = profile
  const declared = new Set(channels.items.map(channel => channel.name))
  const all: Keyed[] = [
    ...twice(channels.items, `${at}.channels.items`, 'channel'),
    ...twice(jobs, `${at}.jobs`, 'job'),
    ...twice(triggers, `${at}.triggers`, 'trigger'),
    ...twice(bridges, `${at}.bridges`, 'bridge'),
  ]
  const say = (key: string, message: string) => all.push({ key: `${at}.${key}`, message })
  if (declared.size > 0 && channels.primary === undefined) say('channels.primary', 'required where there are channels')
  if (channels.primary !== undefined && !declared.has(channels.primary))
    say('channels.primary', 'it is not a channel of this profile')
  for (const [n, { task }] of jobs.entries()) {
    const part = task?.network_participation
    const channel = part && 'channel_id' in part ? part.channel_id : undefined
    if (channel !== undefined && !declared.has(channel))
      say(`jobs.${n}.task.network_participation.channel_id`, 'it is not a channel of this profile')
  }
  for (const [list, presets] of Object.entries({ jobs, triggers })) {
    for (const [n, { agent, agent_name }] of presets.entries())
      if (agent !== undefined && agent_name !== undefined)
        say(`${list}.${n}.agent`, 'set agent or agent_name, not both')
  }
  return all
}

/** Duplicate names in a list, without regard to case. */
export function twice(items: readonly { readonly name: string }[], at: string, what: string): Keyed[] {
  const knownKeys = new Set<string>()
  return items.flatMap((item, n) => {
    const key = item.name.toLowerCase()
    if (!knownKeys.has(key)) {
      knownKeys.add(key)
      return []
    }
    return [{ key: `${at}.${n}.name`, message: `another ${what} has this name` }]
  })
}
