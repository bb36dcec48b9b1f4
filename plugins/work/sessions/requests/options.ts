import type { PermissionOption } from './permission-rules.js'

/** The answers to a question that the daemon words itself. */
export const OWN_OPTIONS: readonly PermissionOption[] = (['allow', 'reject'] as const).flatMap(verb =>
  (['once', 'always'] as const).map(scope => ({
    optionId: `${verb}-${scope}`,
    name: `${verb} ${scope}`,
    kind: `${verb}_${scope}`,
  })),
)
