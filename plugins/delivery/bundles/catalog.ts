import { command } from '../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../kernel/kit/text.js'
import {
  type Brought,
  broughtAgent,
  broughtSidecar,
  type InstalledExtension,
  type Shipment,
} from '../extensions/api.js'
import { BundleErrors } from './errors.js'
import { BundleKind, type BundleSpec } from './kinds.js'
import { type LoadedBundle, type LoadedProfile, loadBundles } from './load.js'
import type { BundleProblem } from './manifest.js'
import type { K } from './needs.js'

type Kernel = Pick<K, 'needs'>

/** Problems that one error names. */
const SHOWN = 50

/** The bundles of all loaded extensions; the extensions plugin publishes their records. */
export class BundleCatalog {
  /** By extension key: an installed extension and a developer's link to it can have different bundles. */
  readonly #byExtension = new Map<string, readonly LoadedBundle[]>()

  constructor(private readonly kernel: Kernel) {}

  /** By extension, then name. */
  all(): LoadedBundle[] {
    const bundles = [...this.#byExtension.values()].flat()
    return bundles.sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  }

  /**
   * Matches names without regard to case.
   * @throws Fault 404 `bundle_extension_not_found`, `bundle_not_found`, `bundle_profile_not_found`
   */
  find(names: { extension_name: string; bundle_name: string; profile_name: string }): {
    readonly bundle: LoadedBundle
    readonly profile: LoadedProfile
  } {
    const { extension_name, bundle_name, profile_name } = names
    const bundles = this.all().filter(({ extension }) => extension === extension_name.trim().toLowerCase())
    if (bundles.length === 0) throw this.#noExtension(extension_name)
    const bundle = byName(bundles, bundle_name)
    if (!bundle)
      throw BundleErrors.bundle_not_found(`extension ${shown(extension_name)} has no bundle ${shown(bundle_name)}`)
    const profile = byName(bundle.profiles, profile_name)
    if (profile) return { bundle, profile }
    const known = bundle.profiles.map(({ name }) => name).join(', ')
    throw BundleErrors.bundle_profile_not_found(
      `bundle ${bundle.name} has no profile ${shown(profile_name)}; it has ${known}`,
    )
  }

  /**
   * Reads the bundles of an extension. A bundle is consented to and activated as a whole, so one invalid part excludes
   * its bundle only. Throws `bundle_invalid` if no bundle is valid.
   */
  async load(extension: InstalledExtension): Promise<Shipment & { readonly bundles: readonly LoadedBundle[] }> {
    const { bundles: all, problems } = await loadBundles(extension)
    const broken = new Set(problems.map(({ file }) => file))
    const bundles = all.filter(({ file }) => !broken.has(file))
    if (problems.length > 0 && bundles.length === 0) throw invalid(extension.name, problems)
    return {
      bundles,
      ...(problems.length > 0 && { leftOut: linesOf(problems).map(([location, what]) => `${location}: ${what}`) }),
      records: bundles.map(bundle => ({ kind: BundleKind, id: bundle.id, name: bundle.name, spec: specOf(bundle) })),
      brings: bundles.flatMap(broughtBundle),
      taken: () => {
        this.#byExtension.set(extension.key, bundles)
        // Publishing an equal record marks nothing, but the reconcilers need the content, which is new to this daemon.
        this.kernel.needs.reconcile.mark(bundles.map(({ id }) => ({ kind: BundleKind.name, id })))
      },
    }
  }

  /** Forgets the bundles of an extension; the records of their activations stay. */
  unload(key: string): void {
    this.#byExtension.delete(key)
  }

  #noExtension(name: string) {
    const found = this.kernel.needs.extensions.installed().find(other => other.name === name.trim().toLowerCase())
    if (!found) return BundleErrors.bundle_extension_not_found(`there is no extension ${shown(name)}`)
    return found.enabled
      ? BundleErrors.bundle_extension_not_found(`extension ${found.name} is ${found.state} and has no bundles now`, {
          next: command('extension list'),
        })
      : BundleErrors.bundle_extension_not_found(`extension ${found.name} is disabled`, {
          next: command('extension enable', found.name),
        })
  }
}

const orderOf = ({ extension, name }: LoadedBundle) => `${extension}\n${name}`

function byName<T extends { readonly name: string }>(items: readonly T[], name: string): T | undefined {
  const key = name.trim().toLowerCase()
  return items.find(item => item.name.toLowerCase() === key)
}

function specOf(bundle: LoadedBundle): BundleSpec {
  const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name)
  return {
    extension_name: bundle.extension,
    extension_version: bundle.version,
    bundle_name: bundle.name,
    ...(bundle.description === undefined ? {} : { description: bundle.description }),
    network_requirement_digest: bundle.requirement,
    profiles: bundle.profiles.map(profile => ({
      name: profile.name,
      ...(profile.description === undefined ? {} : { description: profile.description }),
      content_hash: profile.hash,
      channels: profile.channels.map(channel => ({ ...channel })),
      ...(profile.primaryChannel === undefined ? {} : { primary_channel: profile.primaryChannel }),
      agents: profile.agents.map(({ spec }) => spec.name),
      layouts: profile.layouts.map(({ id }) => id),
      jobs: names(profile.jobs),
      triggers: names(profile.triggers),
      bridges: names(profile.bridges),
    })),
  }
}

/** `every 24h` */
function scheduleText(schedule: object = {}): string {
  const { mode, ...when } = schedule as { mode?: unknown }
  return mode === undefined ? 'no schedule' : [mode, ...Object.values(when)].join(' ')
}

const channelText = (channels: LoadedProfile['channels']) =>
  channels.length > 0 ? `channels ${channels.map(({ name }) => name).join(', ')}` : ''

/** The things that activating a profile would add, for the consent of a person. */
function broughtBundle({ name: bundle, profiles }: LoadedBundle): Brought[] {
  return profiles.flatMap(({ name: profile, agents, layouts, jobs, triggers, bridges, channels }): Brought[] => {
    const named = (name: string) => `${bundle}/${profile}/${name}`
    const by = ({ agent_name, agent }: { agent_name?: string | undefined; agent?: string | undefined }) =>
      agent_name ?? agent ?? 'the default agent'
    return [
      {
        kind: 'bundle',
        name: `${bundle}/${profile}`,
        about: ['when it is activated', channelText(channels)].filter(Boolean).join(', '),
      },
      ...agents.flatMap(({ spec, soul, heartbeat }) => [
        ...broughtAgent(named(spec.name), spec),
        ...(soul === undefined ? [] : [broughtSidecar(named(spec.name), 'SOUL.md')]),
        ...(heartbeat === undefined ? [] : [broughtSidecar(named(spec.name), 'HEARTBEAT.md')]),
      ]),
      ...layouts.map(({ id }) => ({ kind: 'layout' as const, name: named(id), about: 'windows of a workspace' })),
      ...jobs.map(job => ({
        kind: 'job' as const,
        name: named(job.name),
        about: `${by(job)}, ${scheduleText(job.schedule)}`,
      })),
      ...triggers.map(trigger => ({
        kind: 'trigger' as const,
        name: named(trigger.name),
        about: `${by(trigger)}, on ${trigger.event}`,
        ...(trigger.webhook_secret_ref === undefined ? {} : { given: [trigger.webhook_secret_ref] }),
      })),
      ...bridges.map(({ name, platform = 'its own platform' }) => ({
        kind: 'bridge' as const,
        name: named(name),
        about: platform,
      })),
    ]
  })
}

/** One error for all problems: its text has the first, its details have all by file and key. */
function invalid(extension: string, problems: readonly BundleProblem[]) {
  const lines = linesOf(problems)
  const [[where, what] = ['', '']] = lines
  const more = lines.length > 1 ? ` (and ${lines.length - 1} more)` : ''
  return BundleErrors.bundle_invalid(`the bundles of extension ${extension} are not valid: ${where}: ${what}${more}`, {
    details: Object.fromEntries(lines.slice(0, SHOWN)),
    next: command('extension list'),
  })
}

/** Key of each problem is its place: `bundles/kit.toml:7: profiles.0.jobs.0.name`. */
const linesOf = (problems: readonly BundleProblem[]) =>
  problems.map(({ file, line, key, message }) => {
    const location = line === undefined ? file : `${file}:${line}`
    return [[location, key].filter(Boolean).join(': '), message] as const
  })
