/** The part of its definition and workspace that a session may use. */
export interface SessionRights {
  /** Canonical folders in which the agent works; it starts in the first one. */
  readonly roots: readonly string[]
  /** Names of the MCP servers that the agent may start; absent: all. */
  readonly mcpServers?: readonly string[]
  /**
   * IDs of tools, or prefixes that end with `*`. The agent's built-in tools are `svc__read`, `svc__edit`, `svc__execute`,
   * `svc__fetch` and `svc__other`. Absent: all, as in children that an earlier version spawned.
   */
  readonly tools?: readonly string[]
}
