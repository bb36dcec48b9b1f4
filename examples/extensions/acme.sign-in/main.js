import { describe } from 'svc/kit'
import { defineErrors, definePlugin, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'

const Errors = defineErrors({
  acme_sign_in_unknown: {
    status: 400,
    message: 'this sign-in was not started here, or is over',
    next: 'begin it again',
  },
})
/** Sign-ins under way at a time. */
const MOST = 100
const HTML = { as: 'bytes', types: ['text/html; charset=utf-8'] }
const page = text =>
  `<!doctype html><title>Sign in</title><p>${text.replace(/[<>&"]/g, c => `&#${c.charCodeAt(0)};`)}</p>\n`

class SignIns {
  /** Secrets that only those have who began: another site could lead a browser to the page as well. */
  #begun = new Set()

  constructor({ ids }) {
    this.ids = ids
  }

  begin() {
    const state = this.ids.hex(32)
    this.#begun.add(state)
    // Those that nobody finishes are forgotten, the oldest first.
    if (this.#begun.size > MOST) this.#begun.delete(this.#begun.values().next().value)
    return { state }
  }

  finish({ state, code }) {
    if (!this.#begun.delete(state)) throw Errors.acme_sign_in_unknown()
    // Here the code would be exchanged for a token.
    return `You are signed in with ${code}. You can close this page.`
  }
}

const route = routeOf(describe('Sign-in'))

export default definePlugin({ name: 'acme.sign-in', version: '1.0.0', service: async () => SignIns }).surface({
  errors: [Errors],
  routes: [
    route({
      method: 'POST',
      path: '/api/ext/acme.sign-in/begun',
      summary: 'Begin a sign-in',
      replies: { 200: v.object({ state: v.string() }) },
      handle: service => ok(service.begin()),
    }),
    route({
      method: 'GET',
      path: '/api/ext/acme.sign-in/callback',
      summary: 'Finish a sign-in, in the browser',
      public: true,
      navigation: true,
      query: v.object({ state: v.string(), code: v.string() }),
      replies: { 200: HTML },
      faults: { reply: HTML, body: ({ message }) => page(message) },
      handle: (service, { query }) => ok(page(service.finish(query))),
    }),
  ],
})
