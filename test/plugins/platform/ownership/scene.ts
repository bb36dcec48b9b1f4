import { definePlugin, type PluginKernel, type Token } from '../../../../kernel/plugin.js'

/** A plugin that requires a service, and the service that it was handed. */
export function service<T>(of: Token<T>, name = `acme.reads-${of.id.replace(/\W/g, '-')}`) {
  let provided: T | undefined
  let kernel: PluginKernel | undefined
  class Reader {
    constructor(pluginKernel: PluginKernel<{ of: Token<T> }>) {
      provided = pluginKernel.needs.of
      kernel = pluginKernel as PluginKernel
    }
  }
  return {
    plugin: definePlugin({
      name,
      version: '1.0.0',
      requires: { of },
      service: async () => Reader,
    }).surface({}),
    kernel(): PluginKernel {
      if (!kernel) throw new Error(`${name} does not run`)
      return kernel
    },
    current(): T {
      if (provided === undefined) throw new Error(`${of.id} is not there`)
      return provided
    },
  }
}
