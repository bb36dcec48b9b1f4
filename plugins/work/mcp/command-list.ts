import type { Command } from '../../../kernel/plugin.js'

/** Commands that send more than one request. */
export const commands: readonly Command[] = [
  {
    path: 'mcp add',
    summary: 'Add or replace an MCP server',
    args: [
      { name: 'name', summary: 'name of the server; its tools are mcp__<name>__…' },
      { name: 'command', optional: true, summary: 'program to start; or use --url' },
    ],
    options: [
      { name: 'arg', type: 'list', summary: 'argument of the command; or put the command and its arguments after --' },
      { name: 'env', type: 'list', summary: 'environment variable of the command, as NAME=value' },
      {
        name: 'secret-env',
        type: 'list',
        summary: 'secret variable of the command, as NAME=vault:mcp/… or NAME=env:NAME',
      },
      { name: 'url', type: 'text', summary: 'URL of an HTTP server' },
      { name: 'header', type: 'list', summary: 'HTTP header of every request, as Name=value' },
      { name: 'secret-header', type: 'list', summary: 'secret HTTP header of every request, as Name=vault:mcp/…' },
      { name: 'sandbox', type: 'text', summary: 'sandbox profile of its program' },
      { name: 'required', type: 'boolean', summary: 'refuse a session when the server cannot start' },
      { name: 'start-timeout', type: 'text', summary: 'time for its start, 1s to 1h; default: 60s' },
      { name: 'call-timeout', type: 'text', summary: 'time for one call of a tool, 1s to 1h; default: 120s' },
      { name: 'oauth', type: 'boolean', summary: 'require a login: svc mcp auth login <name>' },
      { name: 'workspace', type: 'text', summary: 'workspace that gets the server; default: all' },
      {
        name: 'target',
        type: 'text',
        values: ['auto', 'config', 'sidecar'],
        summary: 'file to write: config.json (config) or mcp.json (sidecar)',
      },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runAdd })),
  },
]
