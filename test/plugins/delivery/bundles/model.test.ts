// proof, timeout: 300s: sequences of activations against a model
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { derivedId } from '../../../../plugins/delivery/bundles/ids.js'
import { Dice, forSeeds } from '../../../kernel/fixtures/dice.js'
import { type Scene, scene } from './bundles-scene.js'
import { agentFile, job, type KitOptions } from './kit.js'

/** `npm run prove:models` has more. */
const STEPS = Number(process.env.SVC_STEPS ?? 40)
const URL = '/api/bundles/activations'
const EXTENSIONS = ['kit-a', 'kit-b'] as const
type Extension = (typeof EXTENSIONS)[number]

/** What a version of an extension has; each is of the one bundle and profile. */
interface Variant {
  readonly agents: readonly string[]
  readonly souls: readonly string[]
  readonly jobs: readonly string[]
  /** Empty: it requires nothing. */
  readonly scopes: readonly string[]
}

/** What is believed of an activation. */
interface Believed {
  readonly id: string
  readonly extension: Extension
  readonly where: string
  version: number
  /** The requirement that it was confirmed for; undefined: for none. */
  confirmed: string | undefined
  digested: string
  keys: readonly string[]
}

const requirement = ({ scopes }: Variant) => scopes.join()

function keysOf(id: string, { agents, souls, jobs }: Variant): string[] {
  return [
    ...agents.map(name => `agent ${derivedId('agent', id, name)}`),
    ...souls.map(name => `agent.soul ${derivedId('agent.soul', id, name)}`),
    ...jobs.map(name => `automation.job ${derivedId('automation.job', id, name)}`),
  ]
}

function kitOf(name: Extension, { agents, souls, jobs, scopes }: Variant): KitOptions {
  return {
    name,
    manifest:
      scopes.length > 0 ? { network_participation: { required: true, mode: 'live', channel_scopes: scopes } } : {},
    agents: Object.fromEntries(agents.map(agent => [agent, agentFile(agent)])),
    files: Object.fromEntries(souls.map(agent => [`agents/${agent}/SOUL.md`, 'Calm.'])),
    profiles: [
      {
        name: 'default',
        agents: agents.map(agent => ({ path: `agents/${agent}` })),
        jobs: jobs.map(one => job(one, { agent: agents[0] })),
      },
    ],
  }
}

/** One sequence of steps; after each the world is compared with what is believed. */
async function play(seed: number): Promise<void> {
  const roll = new Dice(seed)
  const s: Scene = await scene()
  const loaded = new Map<Extension, Variant>()
  const live = new Map<string, Believed>()
  const trace: string[] = []

  const some = (names: readonly string[]) => names.filter(() => roll.chance(0.5))
  const variant = (extension: Extension): Variant => {
    // Those of one extension always have one agent in common, so that overlapping scopes always collide.
    const agents = [`${extension}-lead`, ...some([`${extension}-x`, `${extension}-y`])]
    const scopes = roll.chance(0.5) ? [roll.of(['left', 'right'])] : []
    return { agents, souls: some(agents), jobs: some(['p', 'q', 'r']), scopes }
  }
  const follow = (activation: Believed) => {
    const now = loaded.get(activation.extension)
    if (!now) return
    if (activation.digested !== requirement(now)) {
      activation.digested = requirement(now)
      activation.confirmed = undefined
      activation.version++
    }
    if (requirement(now) === '' || activation.confirmed === requirement(now))
      activation.keys = keysOf(activation.id, now)
  }

  const steps = {
    async change(extension: Extension) {
      const next = variant(extension)
      loaded.set(extension, next)
      await s.kit(kitOf(extension, next))
      for (const activation of live.values()) if (activation.extension === extension) follow(activation)
    },
    async unload(extension: Extension) {
      if (!loaded.delete(extension)) return
      await s.extensions.unload(extension)
    },
    async activate(extension: Extension) {
      const where = roll.of(['', s.one, s.two, s.one, s.two])
      const confirm = roll.chance(0.7)
      const names = { extension_name: extension, bundle_name: 'release-kit', profile_name: 'default' }
      const scope = where === '' ? {} : { scope: 'workspace', workspace: where }
      const { status, body } = await s.request('POST', URL, {
        ...names,
        ...scope,
        confirm_network_requirement: confirm,
      })
      const id = derivedId(
        'activation',
        extension,
        'release-kit',
        'default',
        where === '' ? 'global' : 'workspace',
        where,
      )
      const now = loaded.get(extension)
      const overlapping = [...live.values()].some(
        other => other.extension === extension && (other.where === '' || where === '' || other.where === where),
      )
      const unconfirmed = now !== undefined && requirement(now) !== '' && !confirm
      const expected = !now ? 404 : unconfirmed || overlapping ? 409 : 201
      assert.is(status, expected, JSON.stringify(body))
      if (!now || status !== 201) return
      const digested = requirement(now)
      live.set(id, {
        id,
        extension,
        where,
        version: 1,
        confirmed: digested || undefined,
        digested,
        keys: keysOf(id, now),
      })
    },
    async update(_: Extension) {
      if (live.size === 0) return
      const activation = roll.of([...live.values()])
      const now = loaded.get(activation.extension)
      const confirm = roll.chance(0.5)
      const stale = roll.chance(0.2)
      const expected_version = activation.version + (stale ? 1 : 0)
      const reply = await s.request('PATCH', `${URL}/${activation.id}`, {
        expected_version,
        confirm_network_requirement: confirm,
      })
      const unconfirmed = now && requirement(now) !== '' && activation.confirmed !== requirement(now) && !confirm
      const expected = stale ? 409 : !now ? 404 : unconfirmed ? 409 : 200
      assert.is(reply.status, expected, JSON.stringify(reply.body))
      if (!now || reply.status !== 200) return
      activation.version++
      activation.digested = requirement(now)
      activation.confirmed = requirement(now) || undefined
      activation.keys = keysOf(activation.id, now)
    },
    async deactivate(_: Extension) {
      if (live.size === 0) return
      const { id } = roll.of([...live.values()])
      live.delete(id)
      assert.is(await s.outcome('DELETE', `${URL}/${id}`), '204')
    },
  }
  const verbs: readonly (keyof typeof steps)[] = [
    ...(['change', 'change', 'change', 'activate', 'activate', 'activate', 'activate'] as const),
    ...(['activate', 'activate', 'update', 'update', 'deactivate'] as const),
    // Seldom, for hardly anything can be done without an extension.
    ...(roll.chance(0.5) ? (['unload'] as const) : []),
  ]
  try {
    for (let n = 0; n < STEPS; n++) {
      const verb = n < 2 ? 'change' : roll.of(verbs)
      const extension = n < 2 ? (EXTENSIONS[n] as Extension) : roll.of(EXTENSIONS)
      trace.push(`${verb} ${extension}`)
      await steps[verb](extension)
      await s.quiet()
      const wanted = [...live.values()].flatMap(({ keys }) => keys).sort()
      assert.equal((await s.owned()).sort(), wanted)
      const shown = (await s.request('GET', URL)).body.activations
      assert.equal(
        shown.map(({ id, version }: { id: string; version: number }) => `${id} ${version}`),
        [...live.values()].map(({ id, version }) => `${id} ${version}`).sort(),
      )
    }
  } catch (error) {
    throw new Error(`${trace.join(', ')}: ${(error as Error).message}`, { cause: error })
  } finally {
    await s.end()
  }
}

test('random activations, updates, deactivations and changes leave exactly the records of live activations', () =>
  forSeeds(2, play))

test.run()
