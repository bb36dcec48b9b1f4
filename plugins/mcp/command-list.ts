import type { Command } from '../../kernel/plugin.js'

/** Commands that are more than one request. */
export const commands: readonly Command[] = [
  {
    path: 'mcp add',
    summary: 'Add an MCP server, or replace it',
    args: [
      { name: 'name', summary: 'what to call it; its tools are mcp__<name>__…' },
      { name: 'command', optional: true, summary: 'program that the daemon starts; or use --url' },
    ],
    options: [
      { name: 'arg', type: 'list', summary: 'argument of the command; or put command and arguments behind --' },
      { name: 'env', type: 'list', summary: 'NAME=value for the command' },
      { name: 'secret-env', type: 'list', summary: 'NAME=vault:mcp/… or NAME=env:NAME for the command' },
      { name: 'url', type: 'text', summary: 'address of a server over HTTP' },
      { name: 'header', type: 'list', summary: 'Name=value sent with every request' },
      { name: 'secret-header', type: 'list', summary: 'Name=vault:mcp/… sent with every request' },
      { name: 'sandbox', type: 'text', summary: 'sandbox profile that its program runs in' },
      { name: 'oauth', type: 'boolean', summary: 'it needs a login: svc mcp auth login <name>' },
      { name: 'workspace', type: 'text', summary: 'only for this workspace; default: for all' },
      { name: 'target', type: 'text', values: ['auto', 'config', 'sidecar'], summary: 'config.json or mcp.json' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runAdd })),
  },
]
