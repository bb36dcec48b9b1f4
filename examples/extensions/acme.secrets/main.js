import { describe, SecretResolvers, SecretSet } from 'svc/kit'
import { defineErrors, definePlugin, noContent, routeOf, surfaceOf } from 'svc/plugin'
import { Daemon } from 'svc/plugins/daemon'
import * as v from 'valibot'

const Errors = defineErrors({
  acme_secret_missing: { status: 404, message: 'there is no such secret', next: 'store it first' },
  acme_login_refused: { status: 502, message: 'the server refused the login' },
})

/** Secrets of a team. They are stored as they are, which is good enough to show how they are hidden. */
class SecretsService {
  hidden = new SecretSet()
  #forget = new Map()

  constructor(kernel) {
    this.kernel = kernel
  }

  start() {
    for (const { name, value } of this.kernel.db.all('SELECT name, value FROM acme_secrets_value')) {
      this.#forget.set(name, this.hidden.hide(value, { name: `acme:${name}` }))
    }
  }

  get(name) {
    return this.kernel.db.get('SELECT value FROM acme_secrets_value WHERE name = ?', [name])?.value
  }

  /** Hides a value, then stores it: whatever fails on the way cannot tell it. */
  async put(name, value) {
    const forget = this.hidden.hide(value, { name: `acme:${name}` })
    try {
      await this.kernel.db.tx(t =>
        t.run(
          'INSERT INTO acme_secrets_value (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
          [name, value],
        ),
      )
    } catch (error) {
      forget()
      throw error
    }
    this.#forget.get(name)?.()
    this.#forget.set(name, forget)
  }

  /** Deletes a value, and shows it from then on. */
  async drop(name) {
    await this.kernel.db.tx(t => t.run('DELETE FROM acme_secrets_value WHERE name = ?', [name]))
    this.#forget.get(name)?.()
    this.#forget.delete(name)
  }

  /** A login that fails as logins do: the answer repeats what was sent. */
  logIn(name) {
    const value = this.get(name)
    if (value === undefined) throw Errors.acme_secret_missing(`there is no secret ${name}`)
    const sent = `Basic ${Buffer.from(`team:${value}`).toString('base64')}`
    this.kernel.log.warn(`sent ${sent}`, { url: `https://acme.example/?key=${encodeURIComponent(value)}` })
    throw Errors.acme_login_refused(`the server refused ${value}`, { details: { sent } })
  }
}

const route = routeOf(describe('Secrets'))
const { contribute } = surfaceOf()
const path = '/api/ext/acme.secrets/values/{name}'

export default definePlugin({
  name: 'acme.secrets',
  version: '1.0.0',
  requires: { daemon: Daemon },
  service: async () => SecretsService,
}).surface({
  secrets: [service => service.hidden],
  registries: [contribute(SecretResolvers, service => [{ scheme: 'acme', resolve: name => service.get(name) }])],
  errors: [Errors],
  tables: [{ id: '001', sql: 'CREATE TABLE acme_secrets_value (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT' }],
  routes: [
    route({
      method: 'PUT',
      path,
      summary: 'Store a secret',
      body: v.strictObject({ value: v.string() }),
      replies: { 204: null },
      handle: async (service, { params, body }) => {
        await service.put(params.name, body.value)
        return noContent()
      },
    }),
    route({
      method: 'DELETE',
      path,
      summary: 'Delete a secret',
      replies: { 204: null },
      handle: async (service, { params }) => {
        await service.drop(params.name)
        return noContent()
      },
    }),
    route({
      method: 'POST',
      path: '/api/ext/acme.secrets/logins/{name}',
      summary: 'Log in with a secret',
      replies: { 204: null },
      with: [describe('Secrets', { errors: [502] })],
      handle: (service, { params }) => service.logIn(params.name),
    }),
  ],
})
