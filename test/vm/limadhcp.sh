#!/bin/sh
case $1 in bound|renew)
ip addr flush dev $interface; ip addr add $ip/${mask:-24} dev $interface; ip link set $interface up
for r in $router; do ip route replace default via $r; done
: >/etc/resolv.conf; for d in $dns; do echo nameserver $d >>/etc/resolv.conf; done;;
deconfig) ip link set $interface up;; esac
