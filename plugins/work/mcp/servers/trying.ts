import { aborted } from '../../../../kernel/kit/backoff.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { finding } from '../../../desk/daemon/api.js'
import type { Connection } from '../client/connection.js'
import type { Server } from '../sources/declaration.js'
import { failedItem } from './checks.js'

/** Servers started concurrently. */
const AT_ONCE = 4
/** Servers tried per report. */
const MOST = 200

/** A server with its connection and workspace. */
export interface Tried {
  readonly server: Server
  readonly connection: Connection
  readonly workspaceId: string | undefined
}

/**
 * Starts or connects to each server, and returns items for the unusable ones. Running programs are reused; those
 * started here are stopped again. The `start_timeout` of each server applies.
 */
export async function tryAll(all: readonly Tried[], signal: AbortSignal): Promise<DiagnosticItem[]> {
  const items: DiagnosticItem[] = []
  const waiting = all.slice(0, MOST)
  let done = 0
  const work = async () => {
    for (let one = waiting.shift(); one && !signal.aborted; one = waiting.shift()) {
      const failed = await tryOne(one)
      done++
      if (failed) items.push(failed)
    }
  }
  const over = aborted(signal)
  await Promise.race([Promise.all(Array.from({ length: AT_ONCE }, work)), over])
  return done < all.length ? [...items, untriedItem(all.length - done)] : [...items]
}

async function tryOne({ server: { name }, connection, workspaceId }: Tried): Promise<DiagnosticItem | undefined> {
  const wasReady = connection.state === 'ready'
  try {
    await connection.probe()
    return undefined
  } catch (error) {
    return failedItem({ name, why: connection.failure?.why ?? messageOf(error) }, workspaceId)
  } finally {
    if (!wasReady) await connection.rest()
  }
}

const untriedItem = (count: number) =>
  finding({
    id: 'mcp:untried',
    code: 'mcp_servers_untried',
    category: 'mcp',
    severity: 'warning',
    title: 'MCP servers were not checked',
    message: `${count} MCP servers were not checked: the time limit of the report was reached`,
    suggested_command: command('mcp list'),
  })
