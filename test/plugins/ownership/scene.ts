import { definePlugin, type PluginKernel, type Token } from '../../../kernel/plugin.js'

/** A plugin that requires a service, and the service that it was handed. */
export function service<T>(of: Token<T>) {
  let own: T | undefined
  class Reader {
    constructor({ needs }: PluginKernel<{ of: Token<T> }>) {
      own = needs.of
    }
  }
  return {
    plugin: definePlugin({
      name: `acme.reads-${of.id.replace(/\W/g, '-')}`,
      version: '1.0.0',
      requires: { of },
      service: async () => Reader,
    }).surface({}),
    current(): T {
      if (own === undefined) throw new Error(`${of.id} is not there`)
      return own
    },
  }
}
