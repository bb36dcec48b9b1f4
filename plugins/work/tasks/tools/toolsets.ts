/** Toolsets with the tools that an agent needs to work on tasks, without those that manage tasks. */
export const WORKING = ['tasks', 'autonomy', 'coordination'] as const
