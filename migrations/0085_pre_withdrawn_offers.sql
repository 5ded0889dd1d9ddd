-- Offers that were withdrawn are no attempts: they used nothing, and no sum of usage counts them.

delete from usage_hour where outcome = 'withdrawn';
