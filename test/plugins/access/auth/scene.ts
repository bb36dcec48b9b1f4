import { readFile } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { describe } from '../../../../kernel/kit/annotations/index.js'
import { definePlugin, kind, ok, type Plugin, type PluginKernel, routeOf, streamed } from '../../../../kernel/plugin.js'
import { auth } from '../../../../plugins/index.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { type Answer, type Ask, ask, type Doors, openDoors } from '../../../kernel/http/doors.js'

const route = routeOf<unknown>(describe('Test'))

const until = (signal: AbortSignal) =>
  new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))

/** Who asks; a stream and a request that go on until they are ended. */
export const places = definePlugin({ name: 'places', version: '1.0.0' }).surface({
  kinds: [kind({ name: 'test.note', spec: v.object({ text: v.string() }), maxBytes: 1000 })],
  routes: [
    route({
      method: 'GET',
      path: '/api/who',
      summary: 'Who asks',
      replies: { 200: v.object({ id: v.string(), origin: v.string() }) },
      handle: (_self, { actor: { id, origin = '' } }) => ok({ id, origin }),
    }),
    route({
      method: 'GET',
      path: '/api/ticks',
      summary: 'Streams',
      contentType: 'text/event-stream',
      replies: { 200: null },
      frames: v.object({ data: v.number() }),
      handle: (_self, { signal }) =>
        streamed(
          (async function* () {
            yield { data: 1 }
            await until(signal)
          })(),
        ),
    }),
    route({
      method: 'POST',
      path: '/api/waits',
      summary: 'Waits',
      replies: { 200: v.object({}) },
      handle: async (_self, { signal }) => {
        await until(signal)
        return ok({})
      },
    }),
  ],
}) as Plugin

/** Record events as the log has them: what they are about, who acted and from where. */
export const eventReader = definePlugin({ name: 'teller', version: '1.0.0', requires: { events: Events } }).surface({
  routes: [
    routeOf<PluginKernel<{ events: typeof Events }>>()({
      method: 'GET',
      path: '/api/told',
      with: [describe('Test')],
      summary: 'Record events',
      replies: { 200: v.object({ told: v.array(v.array(v.string())) }) },
      handle: async ({ needs }) => {
        const events = await needs.events.list({ name: 'record.put' })
        return ok({ told: events.map(({ subject = '', actor }) => [subject, actor.id, actor.origin ?? '']) })
      },
    }),
  ],
}) as Plugin

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
export const tokenOf = async (home: string) => (await readFile(path.join(home, 'operator.token'), 'utf8')).trim()

export interface AuthScene extends Doors {
  /** The operator token now. */
  token(): Promise<string>
  /** Status, with the code of an error or the body of a reply; over TCP. */
  tcp(
    method: string,
    url: string,
    token?: string,
    more?: Ask,
  ): Promise<Pick<Answer, 'status' | 'body'> & { code?: string }>
  /** Makes a key over the socket. */
  key(): Promise<{ id: string; key: string }>
}

/** A kernel with the plugin on both doors, where nobody is trusted without a token. */
export async function withAuth(work: (scene: AuthScene) => Promise<void>, http = {}, plugins: readonly Plugin[] = []) {
  const doors = await openDoors([auth, places, ...plugins], undefined, { trust_own_user: false, ...http })
  const token = () => tokenOf(doors.home)
  try {
    await work({
      ...doors,
      token,
      async tcp(method, url, given, more = {}) {
        const headers = { ...(given === undefined ? {} : bearer(given)), ...more.headers }
        const { status, body } = await ask(doors.where.tcp, url, { ...more, method, headers })
        return { status, body, ...(body.code ? { code: body.code } : {}) }
      },
      async key() {
        const headers = bearer(await token())
        const { body } = await ask(doors.where.socket, '/api/v0/auth/generate', { method: 'POST', headers })
        return { id: body.data.id, key: body.data.api_key }
      },
    })
  } finally {
    await doors.close()
  }
}
