import type { PluginKernel, Servers } from '../../kernel/plugin.js'
import { takeUpgrades } from './upgrades.js'

/** Takes the requests for a WebSocket at every door, for as long as it runs. */
export class ChannelsService {
  constructor({ needs, scope }: PluginKernel<{ servers: typeof Servers }>) {
    const ends: (() => void)[] = []
    const leave = needs.servers((server, serve) => ends.push(takeUpgrades(server, serve)))
    scope.defer('upgrades', () => {
      leave()
      for (const end of ends) end()
    })
  }
}
