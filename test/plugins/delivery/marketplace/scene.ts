import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Plugin } from '../../../../kernel/plugin.js'
import { marketplace } from '../../../../plugins/index.js'
import { openSkills, skillText } from '../../agents/skills/scene.js'
import { type Entry, tarball } from '../installer/tarball.js'

/** What a catalog answers for one file: bytes, or whatever a handler does. */
export type Answer = Buffer | string | ((response: ServerResponse) => void)

/** A catalog over HTTP whose files a test changes. */
export async function serveCatalog() {
  const files = new Map<string, Answer>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    const name = (request.url ?? '/').slice(1)
    requests.push(name)
    const answer = files.get(name)
    if (answer === undefined) response.writeHead(404).end()
    else if (typeof answer === 'function') answer(response)
    else response.writeHead(200).end(answer)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    files,
    asked: requests,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

export const feed = (entries: readonly unknown[]) => JSON.stringify({ version: 1, entries })

/** An author with a key of their own. */
export function author() {
  const { privateKey } = generateKeyPairSync('ed25519')
  const key = Buffer.from(privateKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64')
  return { privateKey, key }
}

export interface SkillRelease {
  readonly version?: string
  readonly body?: string
  readonly by?: { readonly privateKey: KeyObject; readonly key: string } | undefined
  readonly more?: readonly Entry[]
  /** Over the entry of the feed. */
  readonly entry?: Record<string, unknown>
  /** Over its one version. */
  readonly release?: Record<string, unknown>
}

/** A skill as a catalog has it: its archive, and its entry in the feed. */
export function signedSkill(id: string, { version = '1.0.0', body, by, more = [], entry, release }: SkillRelease = {}) {
  const bytes = tarball({ path: 'SKILL.md', body: skillText(id, body, [`version: ${version}`]) }, ...more)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const archive = `skills/${id}-${version}.tar.gz`
  const text = Buffer.from(`svc-skill-v1\n${id}\n${version}\n${sha256}\n`)
  const signature = by && sign(null, text, by.privateKey).toString('base64')
  return {
    archive,
    bytes,
    entry: {
      id,
      name: id,
      description: `What ${id} is for`,
      ...(by && { public_key: by.key }),
      versions: [{ version, archive, sha256, ...(signature && { signature }), ...release }],
      ...entry,
    },
  }
}

/** A daemon with the marketplace; `use` chooses the catalog. */
export async function openMarketplace(home?: string, plugins: readonly Plugin[] = []) {
  const world = await openSkills({ plugins: [marketplace, ...plugins], ...(home !== undefined && { home }) })
  const post = (url: string, body?: unknown) => world.kernel.request('POST', url, body)
  return Object.assign(world, {
    use: async (where: string) => {
      const reply = await world.kernel.request('PATCH', '/api/settings/keys', {
        changes: [
          { key: 'marketplace.catalog.base_url', value: where },
          { key: 'extensions.trust.allow_unverified', value: false },
        ],
      })
      if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
    },
    /** The time that the catalog has; the default is enough for a machine that does other things. */
    patience: (value: string) =>
      world.kernel.request('PATCH', '/api/settings/keys', {
        changes: [{ key: 'marketplace.catalog.timeout', value }],
      }),
    install: (slug: string, version?: string) =>
      post('/api/skills/marketplace/install', { slug, ...(version !== undefined && { version }) }),
    update: (body: object) => post('/api/skills/marketplace/update', body),
    remove: (name: string) => world.kernel.request('DELETE', `/api/skills/marketplace/${name}`),
    refresh: async (kind = 'skill') => (await post(`/api/marketplace/refresh?kind=${kind}`)).body.kinds[0],
  })
}
